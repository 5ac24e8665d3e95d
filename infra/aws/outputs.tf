output "kubeconfig_command" {
  description = "Writes a kubeconfig for this cluster."
  value       = "aws eks update-kubeconfig --region ${var.region} --name ${aws_eks_cluster.this.name}"
}

output "login_command" {
  description = "How users log in, for devctl admin user kubeconfig USER --login."
  value       = "aws eks get-token --region ${var.region} --cluster-name ${aws_eks_cluster.this.name}"
}

output "install_command" {
  description = "Installs development servers."
  value       = "devctl install aws --image ${aws_ecr_repository.this["devservers-operator"].repository_url}:VERSION --efs ${aws_efs_file_system.shared.id}"
}

output "image_repositories" {
  description = "Where images are pushed to."
  value       = { for name, repository in aws_ecr_repository.this : name => repository.repository_url }
}

output "service_account_roles" {
  description = "The role of each service account that calls AWS."
  value       = { for name, role in aws_iam_role.service_account : name => role.arn }
}

output "interruption_queue" {
  description = "The queue that Karpenter reads (settings.interruptionQueue)."
  value       = aws_sqs_queue.interruptions.name
}

output "efs_file_system" {
  description = "The file system of shared volumes, for devctl install aws --efs."
  value       = aws_efs_file_system.shared.id
}
