variable "cluster_name" {
  description = "Name of the cluster."
  type        = string
  default     = "iris-cluster"
  validation {
    # The VPC is called NAME-vpc, and CoreWeave takes 30 characters.
    condition     = can(regex("^[a-z][a-z0-9-]{0,25}$", var.cluster_name))
    error_message = "Use up to 26 lowercase letters, digits and dashes, beginning with a letter."
  }
}

variable "zone" {
  description = "Availability zone of CoreWeave."
  type        = string
  default     = "US-EAST-04A"
}

variable "kubernetes_version" {
  description = "Kubernetes version, with its v."
  type        = string
  default     = "v1.35"
}

variable "host_cidr" {
  description = "Addresses of nodes."
  type        = string
  default     = "10.16.192.0/18"
}

variable "pod_cidr" {
  description = "Addresses of Pods."
  type        = string
  default     = "10.0.0.0/13"
}

variable "service_cidr" {
  description = "Addresses of Services."
  type        = string
  default     = "10.16.0.0/22"
}

variable "load_balancer_cidr" {
  description = "Addresses of internal load balancers."
  type        = string
  default     = "10.32.4.0/22"
}

variable "bucket_name" {
  description = "Bucket for bundles and results. Bucket names are unique among all customers."
  type        = string
  validation {
    condition     = can(regex("^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$", var.bucket_name)) && !startswith(var.bucket_name, "cw-")
    error_message = "Use 3 to 63 lowercase letters, digits and dashes, and no cw- at the beginning."
  }
}

variable "bucket_principals" {
  description = "Users and service accounts that may use the bucket."
  type        = list(string)
}
