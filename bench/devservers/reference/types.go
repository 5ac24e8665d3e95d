package main

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Only what this operator reads and writes of the two kinds.

var groupVersion = schema.GroupVersion{Group: "devservers.io", Version: "v1"}

type Port struct {
	Name string `json:"name"`
	Port int32  `json:"port"`
}

type DevServerSpec struct {
	Flavor             string `json:"flavor"`
	Owner              string `json:"owner,omitempty"`
	Image              string `json:"image,omitempty"`
	Mode               string `json:"mode,omitempty"`
	Running            *bool  `json:"running,omitempty"`
	PersistentHomeSize string `json:"persistentHomeSize,omitempty"`
	EnableSSH          *bool  `json:"enableSSH,omitempty"`
	Ports              []Port `json:"ports,omitempty"`
}

type AppliedFlavor struct {
	Applied string `json:"applied"`
}

type DevServerStatus struct {
	Phase              string             `json:"phase,omitempty"`
	Ready              bool               `json:"ready,omitempty"`
	Message            string             `json:"message,omitempty"`
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
	PodNames           []string           `json:"podNames,omitempty"`
	ServiceName        string             `json:"serviceName,omitempty"`
	RunningSince       *metav1.Time       `json:"runningSince,omitempty"`
	StartTime          *metav1.Time       `json:"startTime,omitempty"`
	Flavor             *AppliedFlavor     `json:"flavor,omitempty"`
}

type DevServer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              DevServerSpec   `json:"spec"`
	Status            DevServerStatus `json:"status,omitempty"`
}

type DevServerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DevServer `json:"items"`
}

type DevServerFlavorSpec struct {
	Resources    corev1.ResourceRequirements `json:"resources"`
	NodeSelector map[string]string           `json:"nodeSelector,omitempty"`
	Tolerations  []corev1.Toleration         `json:"tolerations,omitempty"`
	Image        string                      `json:"image,omitempty"`
}

type DevServerFlavor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              DevServerFlavorSpec `json:"spec"`
}

type DevServerFlavorList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DevServerFlavor `json:"items"`
}

func (in *DevServer) DeepCopyObject() runtime.Object {
	out := *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Running = copied(in.Spec.Running)
	out.Spec.EnableSSH = copied(in.Spec.EnableSSH)
	out.Spec.Ports = append([]Port(nil), in.Spec.Ports...)
	out.Status.Conditions = append([]metav1.Condition(nil), in.Status.Conditions...)
	out.Status.PodNames = append([]string(nil), in.Status.PodNames...)
	out.Status.RunningSince = in.Status.RunningSince.DeepCopy()
	out.Status.StartTime = in.Status.StartTime.DeepCopy()
	out.Status.Flavor = copied(in.Status.Flavor)
	return &out
}

func (in *DevServerList) DeepCopyObject() runtime.Object {
	out := *in
	out.Items = make([]DevServer, len(in.Items))
	for i := range in.Items {
		out.Items[i] = *in.Items[i].DeepCopyObject().(*DevServer)
	}
	return &out
}

func (in *DevServerFlavor) DeepCopyObject() runtime.Object {
	out := *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	in.Spec.Resources.DeepCopyInto(&out.Spec.Resources)
	out.Spec.NodeSelector = make(map[string]string, len(in.Spec.NodeSelector))
	for name, value := range in.Spec.NodeSelector {
		out.Spec.NodeSelector[name] = value
	}
	out.Spec.Tolerations = append([]corev1.Toleration(nil), in.Spec.Tolerations...)
	return &out
}

func (in *DevServerFlavorList) DeepCopyObject() runtime.Object {
	out := *in
	out.Items = make([]DevServerFlavor, len(in.Items))
	for i := range in.Items {
		out.Items[i] = *in.Items[i].DeepCopyObject().(*DevServerFlavor)
	}
	return &out
}

func copied[T any](in *T) *T {
	if in == nil {
		return nil
	}
	out := *in
	return &out
}

func register(scheme *runtime.Scheme) {
	scheme.AddKnownTypes(groupVersion, &DevServer{}, &DevServerList{}, &DevServerFlavor{}, &DevServerFlavorList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
}
