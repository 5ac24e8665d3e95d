# Roles of the control plane and of nodes, and one role for each service account that calls AWS (IRSA).
resource "aws_iam_role" "cluster" {
  name               = "${var.cluster_name}-cluster"
  assume_role_policy = data.aws_iam_policy_document.assume_eks.json
}

data "aws_iam_policy_document" "assume_eks" {
  statement {
    actions = ["sts:AssumeRole"]
    principals {
      type        = "Service"
      identifiers = ["eks.amazonaws.com"]
    }
  }
}

resource "aws_iam_role_policy_attachment" "cluster" {
  role       = aws_iam_role.cluster.name
  policy_arn = "${local.arn}:iam::aws:policy/AmazonEKSClusterPolicy"
}

resource "aws_iam_role" "node" {
  name               = "${var.cluster_name}-node"
  assume_role_policy = data.aws_iam_policy_document.assume_ec2.json
}

data "aws_iam_policy_document" "assume_ec2" {
  statement {
    actions = ["sts:AssumeRole"]
    principals {
      type        = "Service"
      identifiers = ["ec2.amazonaws.com"]
    }
  }
}

resource "aws_iam_role_policy_attachment" "node" {
  for_each = toset([
    "AmazonEKSWorkerNodePolicy",
    "AmazonEKS_CNI_Policy",
    "AmazonEC2ContainerRegistryPullOnly",
  ])
  role       = aws_iam_role.node.name
  policy_arn = "${local.arn}:iam::aws:policy/${each.value}"
}

# Nodes that Karpenter makes join with the node role.
resource "aws_eks_access_entry" "node" {
  cluster_name  = aws_eks_cluster.this.name
  principal_arn = aws_iam_role.node.arn
  type          = "EC2_LINUX"
}

data "tls_certificate" "issuer" {
  url = aws_eks_cluster.this.identity[0].oidc[0].issuer
}

resource "aws_iam_openid_connect_provider" "cluster" {
  url             = aws_eks_cluster.this.identity[0].oidc[0].issuer
  client_id_list  = ["sts.amazonaws.com"]
  thumbprint_list = [data.tls_certificate.issuer.certificates[0].sha1_fingerprint]
}

locals {
  issuer = replace(aws_eks_cluster.this.identity[0].oidc[0].issuer, "https://", "")

  # Role to service account, and to the policy in policies/ that it gets. Each may do what its program calls, and no more.
  service_accounts = {
    "ebs-csi"                  = { namespace = "kube-system", account = "ebs-csi-controller-sa" }
    "efs-csi"                  = { namespace = "kube-system", account = "efs-csi-controller-sa" }
    "karpenter"                = { namespace = "kube-system", account = "karpenter" }
    "load-balancer-controller" = { namespace = "kube-system", account = "aws-load-balancer-controller" }
    "devservers-metrics"       = { namespace = "devservers-system", account = "devservers-metrics" }
  }

  policy_values = {
    account            = local.account
    arn                = local.arn
    cluster            = var.cluster_name
    efs_file_system    = aws_efs_file_system.shared.arn
    interruption_queue = aws_sqs_queue.interruptions.arn
    node_role          = aws_iam_role.node.arn
    region             = var.region
  }
}

data "aws_iam_policy_document" "assume_service_account" {
  for_each = local.service_accounts
  statement {
    actions = ["sts:AssumeRoleWithWebIdentity"]
    principals {
      type        = "Federated"
      identifiers = [aws_iam_openid_connect_provider.cluster.arn]
    }
    condition {
      test     = "StringEquals"
      variable = "${local.issuer}:sub"
      values   = ["system:serviceaccount:${each.value.namespace}:${each.value.account}"]
    }
    condition {
      test     = "StringEquals"
      variable = "${local.issuer}:aud"
      values   = ["sts.amazonaws.com"]
    }
  }
}

resource "aws_iam_role" "service_account" {
  for_each           = local.service_accounts
  name               = "${var.cluster_name}-${each.key}"
  assume_role_policy = data.aws_iam_policy_document.assume_service_account[each.key].json
}

resource "aws_iam_role_policy" "service_account" {
  for_each = local.service_accounts
  name     = each.key
  role     = aws_iam_role.service_account[each.key].id
  policy   = templatefile("${path.module}/policies/${each.key}.json", local.policy_values)
}
