# One repository for each image. Tags never move, and untagged layers go after two weeks.
locals {
  images = ["devservers-console", "devservers-operator", "devserver-tools"]
}

resource "aws_ecr_repository" "this" {
  for_each             = toset(local.images)
  name                 = each.value
  image_tag_mutability = "IMMUTABLE"

  image_scanning_configuration {
    scan_on_push = true
  }

  encryption_configuration {
    encryption_type = "KMS"
  }
}

resource "aws_ecr_lifecycle_policy" "this" {
  for_each   = aws_ecr_repository.this
  repository = each.value.name
  policy = jsonencode({
    rules = [{
      rulePriority = 1
      description  = "Delete untagged layers after two weeks."
      selection    = { tagStatus = "untagged", countType = "sinceImagePushed", countUnit = "days", countNumber = 14 }
      action       = { type = "expire" }
    }]
  })
}
