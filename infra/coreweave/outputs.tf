output "api_server_endpoint" {
  description = "Address of the API server, for the kubeconfig."
  value       = coreweave_cks_cluster.iris.api_server_endpoint
}

output "service_account_issuer" {
  description = "Issuer of the cluster's service accounts, for credentials of the bucket without keys."
  value       = coreweave_cks_cluster.iris.service_account_oidc_issuer_url
}

output "bundle_prefix" {
  description = "What `bundle_prefix` of the cluster file should be."
  value       = "s3://${coreweave_object_storage_bucket.iris.name}/iris"
}
