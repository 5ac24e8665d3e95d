package main

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// statusOf reads from the claim and the pod how far a server is, step by step.
func statusOf(server *DevServer, claim *corev1.PersistentVolumeClaim, pods []corev1.Pod) DevServerStatus {
	status := *server.DeepCopyObject().(*DevServer)
	now := &status.Status
	now.ObservedGeneration = server.Generation
	now.ServiceName = server.Name + "-ssh"
	now.Flavor = &AppliedFlavor{Applied: server.Spec.Flavor}
	if now.RunningSince == nil {
		now.RunningSince = server.CreationTimestamp.DeepCopy()
	}
	now.PodNames = nil
	var pod *corev1.Pod
	for i := range pods {
		now.PodNames = append(now.PodNames, pods[i].Name)
		if pods[i].DeletionTimestamp == nil {
			pod = &pods[i]
		}
	}
	bound := claim != nil && claim.Status.Phase == corev1.ClaimBound
	scheduled := pod != nil && pod.Spec.NodeName != ""
	ready := pod != nil && len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].Ready
	tell(now, "FlavorAccepted", true, "Accepted")
	tell(now, "VolumeReady", bound, word(bound, "Bound", "Waiting"))
	tell(now, "PodScheduled", scheduled, word(scheduled, "Scheduled", "Waiting"))
	tell(now, "ImagePulled", ready, word(ready, "Pulled", "Waiting"))
	tell(now, "Ready", ready, word(ready, "Ready", "Starting"))
	tell(now, "ExpiringSoon", false, "NotSoon")
	tell(now, "Resizing", false, "None")
	switch {
	case !running(server):
		now.Phase = word(pod == nil, "Stopped", "Stopping")
	case ready:
		now.Phase = "Running"
	case scheduled:
		now.Phase = "Starting"
	default:
		now.Phase = "Pending"
	}
	now.Ready = now.Phase == "Running"
	if now.Ready && now.StartTime == nil {
		at := metav1.Now()
		now.StartTime = &at
	}
	return *now
}

func tell(status *DevServerStatus, kind string, holds bool, reason string) {
	value := metav1.ConditionFalse
	if holds {
		value = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: kind, Status: value, Reason: reason})
}

func word(holds bool, yes, no string) string {
	if holds {
		return yes
	}
	return no
}
