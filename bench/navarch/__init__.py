"""What the fleet's control plane and its agents cost."""
