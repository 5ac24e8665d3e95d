# CoreWeave refuses the first bucket of an organization that has no access policy.
resource "coreweave_object_storage_organization_access_policy" "iris" {
  name = "${var.cluster_name}-bucket"
  statements = [
    {
      name       = "own-bucket"
      effect     = "Allow"
      actions    = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:ListBucket"]
      resources  = [var.bucket_name, "${var.bucket_name}/*"]
      principals = var.bucket_principals
    },
    {
      name       = "create-bucket"
      effect     = "Allow"
      actions    = ["s3:CreateBucket", "s3:PutBucketVersioning", "s3:PutLifecycleConfiguration"]
      resources  = [var.bucket_name]
      principals = var.bucket_principals
    },
  ]
}

resource "coreweave_object_storage_bucket" "iris" {
  name       = var.bucket_name
  zone       = var.zone
  depends_on = [coreweave_object_storage_organization_access_policy.iris]
}
