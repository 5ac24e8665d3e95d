variable "region" {
  description = "AWS region."
  type        = string
  default     = "us-east-1"
}

variable "zones" {
  description = "Availability zones. GPU types are not sold in every zone."
  type        = list(string)
  default     = ["us-east-1a", "us-east-1b"]
  validation {
    condition     = length(var.zones) >= 2
    error_message = "EKS needs subnets in at least two zones."
  }
}

variable "cluster_name" {
  description = "Name of the EKS cluster, and prefix of every role."
  type        = string
  default     = "devservers"
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,30}$", var.cluster_name))
    error_message = "Use up to 31 lowercase letters, digits and dashes, beginning with a letter."
  }
}

variable "kubernetes_version" {
  description = "Kubernetes version of the control plane."
  type        = string
  default     = "1.34"
}

variable "vpc_cidr" {
  description = "Address range of the VPC."
  type        = string
  default     = "10.64.0.0/16"
}

variable "api_access_cidrs" {
  description = "Address ranges that may reach the API server. Empty means from inside the VPC alone."
  type        = list(string)
  default     = []
}

variable "admin_principal_arns" {
  description = "IAM principals that administer the cluster."
  type        = list(string)
  default     = []
}

variable "user_role_arns" {
  description = "IAM principal of each user that logs in with one of their own."
  type        = map(string)
  default     = {}
}

variable "sso_role_arn" {
  description = "IAM role of SSO that all users share. Session names are user names. Empty means none."
  type        = string
  default     = ""
}

variable "system_instance_type" {
  description = "Instance type of the nodes that run the operator, the bastion and Karpenter."
  type        = string
  default     = "m7i.large"
}
