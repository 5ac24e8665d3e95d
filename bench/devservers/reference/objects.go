package main

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	serverLabel  = "devservers.io/server"
	homeLabel    = "devservers.io/home"
	scriptsLabel = "devservers.io/scripts"
	scriptsName  = "devserver-scripts"
	finalizer    = "devservers.io/home"
	deleteAfter  = "devservers.io/delete-after"
	home         = "/home/dev"
)

func owned(server *DevServer, name string) metav1.ObjectMeta {
	controller := true
	return metav1.ObjectMeta{
		Name:      name,
		Namespace: server.Namespace,
		Labels:    map[string]string{serverLabel: server.Name},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: groupVersion.String(), Kind: "DevServer", Name: server.Name, UID: server.UID,
			Controller: &controller, BlockOwnerDeletion: &controller,
		}},
	}
}

func homeOf(server *DevServer) *corev1.PersistentVolumeClaim {
	meta := owned(server, server.Name+"-home")
	meta.OwnerReferences = nil
	meta.Labels[homeLabel] = server.Name
	return &corev1.PersistentVolumeClaim{ObjectMeta: meta, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceStorage: resource.MustParse(server.Spec.PersistentHomeSize),
		}},
	}}
}

func scriptsOf(namespace string, scripts map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: scriptsName, Namespace: namespace, Labels: map[string]string{scriptsLabel: "true"},
		},
		Data: scripts,
	}
}

func serviceOf(server *DevServer) *corev1.Service {
	var ports []corev1.ServicePort
	if server.Spec.EnableSSH == nil || *server.Spec.EnableSSH {
		ports = append(ports, corev1.ServicePort{Name: "ssh", Port: 22, TargetPort: intstr.FromInt32(22)})
	}
	for _, one := range server.Spec.Ports {
		ports = append(ports, corev1.ServicePort{Name: one.Name, Port: one.Port, TargetPort: intstr.FromInt32(one.Port)})
	}
	return &corev1.Service{ObjectMeta: owned(server, server.Name+"-ssh"), Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeClusterIP, Selector: map[string]string{serverLabel: server.Name}, Ports: ports,
	}}
}

func bodyOf(server *DevServer, flavor *DevServerFlavor, image string) *appsv1.Deployment {
	replicas, history := int32(1), int32(1)
	if !running(server) {
		replicas = 0
	}
	labels := map[string]string{serverLabel: server.Name}
	return &appsv1.Deployment{ObjectMeta: owned(server, server.Name), Spec: appsv1.DeploymentSpec{
		Replicas:             &replicas,
		RevisionHistoryLimit: &history,
		Strategy:             appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
		Selector:             &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podOf(server, flavor, image),
		},
	}}
}

func podOf(server *DevServer, flavor *DevServerFlavor, image string) corev1.PodSpec {
	no, grace, group, mode := false, int64(30), int64(1000), int32(0o755)
	onMismatch := corev1.FSGroupChangeOnRootMismatch
	for _, chosen := range []string{flavor.Spec.Image, server.Spec.Image} {
		if chosen != "" {
			image = chosen
		}
	}
	return corev1.PodSpec{
		AutomountServiceAccountToken:  &no,
		EnableServiceLinks:            &no,
		TerminationGracePeriodSeconds: &grace,
		SecurityContext:               &corev1.PodSecurityContext{FSGroup: &group, FSGroupChangePolicy: &onMismatch},
		NodeSelector:                  flavor.Spec.NodeSelector,
		Tolerations:                   flavor.Spec.Tolerations,
		Containers: []corev1.Container{{
			Name:            "dev",
			Image:           image,
			ImagePullPolicy: corev1.PullIfNotPresent,
			Command:         []string{"/bin/sh", "-c", "trap 'exit 0' TERM INT; while :; do sleep 86400 & wait $!; done"},
			WorkingDir:      home,
			Env: []corev1.EnvVar{
				{Name: "HOME", Value: home},
				{Name: "DEVSERVER_NAME", Value: server.Name},
				{Name: "DEVSERVER_OWNER", Value: server.Spec.Owner},
				{Name: "DEVSERVER_MODE", Value: server.Spec.Mode},
			},
			Resources: flavor.Spec.Resources,
			ResizePolicy: []corev1.ContainerResizePolicy{
				{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.NotRequired},
				{ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.NotRequired},
			},
			VolumeMounts: []corev1.VolumeMount{
				{Name: "home", MountPath: home},
				{Name: "shm", MountPath: "/dev/shm"},
				{Name: "scripts", MountPath: "/opt/devserver/bin"},
			},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: &no,
				SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
		}},
		Volumes: []corev1.Volume{
			{Name: "home", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: server.Name + "-home"}}},
			{Name: "shm", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}},
			{Name: "scripts", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: scriptsName}, DefaultMode: &mode,
			}}},
		},
	}
}

func running(server *DevServer) bool { return server.Spec.Running == nil || *server.Spec.Running }
