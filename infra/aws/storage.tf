# The file system of shared volumes. Each volume is an access point of its own in it, made by the EFS driver.
resource "aws_efs_file_system" "shared" {
  creation_token  = "${var.cluster_name}-shared"
  encrypted       = true
  throughput_mode = "elastic"
  tags            = { Name = "${var.cluster_name}-shared" }

  lifecycle_policy {
    transition_to_ia = "AFTER_30_DAYS"
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_security_group" "efs" {
  name        = "${var.cluster_name}-efs"
  description = "NFS from the nodes of ${var.cluster_name}"
  vpc_id      = aws_vpc.this.id
}

resource "aws_vpc_security_group_ingress_rule" "efs" {
  security_group_id            = aws_security_group.efs.id
  description                  = "NFS from nodes"
  referenced_security_group_id = aws_eks_cluster.this.vpc_config[0].cluster_security_group_id
  ip_protocol                  = "tcp"
  from_port                    = 2049
  to_port                      = 2049
}

resource "aws_efs_mount_target" "shared" {
  count           = length(var.zones)
  file_system_id  = aws_efs_file_system.shared.id
  subnet_id       = aws_subnet.private[count.index].id
  security_groups = [aws_security_group.efs.id]
}

# Mounts without TLS, and mounts from outside of the VPC's mount targets, are refused.
resource "aws_efs_file_system_policy" "shared" {
  file_system_id = aws_efs_file_system.shared.id
  policy         = templatefile("${path.module}/policies/efs-file-system.json", local.policy_values)
}

resource "aws_efs_backup_policy" "shared" {
  file_system_id = aws_efs_file_system.shared.id
  backup_policy {
    status = "ENABLED"
  }
}
