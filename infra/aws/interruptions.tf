# EC2 gives two minutes before it takes a spot machine back. Karpenter reads that notice from this queue and drains the node.
resource "aws_sqs_queue" "interruptions" {
  name                      = "${var.cluster_name}-interruptions"
  message_retention_seconds = 300
  sqs_managed_sse_enabled   = true
}

resource "aws_sqs_queue_policy" "interruptions" {
  queue_url = aws_sqs_queue.interruptions.url
  policy    = templatefile("${path.module}/policies/interruption-queue.json", local.policy_values)
}

locals {
  interruption_events = {
    "spot-interruption" = { source = "aws.ec2", type = "EC2 Spot Instance Interruption Warning" }
    "rebalance"         = { source = "aws.ec2", type = "EC2 Instance Rebalance Recommendation" }
    "state-change"      = { source = "aws.ec2", type = "EC2 Instance State-change Notification" }
    "health"            = { source = "aws.health", type = "AWS Health Event" }
  }
}

resource "aws_cloudwatch_event_rule" "interruptions" {
  for_each      = local.interruption_events
  name          = "${var.cluster_name}-${each.key}"
  event_pattern = jsonencode({ source = [each.value.source], "detail-type" = [each.value.type] })
}

resource "aws_cloudwatch_event_target" "interruptions" {
  for_each = aws_cloudwatch_event_rule.interruptions
  rule     = each.value.name
  arn      = aws_sqs_queue.interruptions.arn
}
