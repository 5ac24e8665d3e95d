package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type standing struct {
	Server DevServer       `json:"server"`
	Flavor DevServerFlavor `json:"flavor"`
	Pod    corev1.Pod      `json:"pod"`
}

// atRest reads servers with their flavors and pods, and prints for each what this operator would have made and told of
// it: its home, its Service, its Deployment, and the server with its status, one line of JSON each.
func atRest() {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var one standing
		err := in.Decode(&one)
		if errors.Is(err, io.EOF) {
			return
		}
		must(err)
		claim := homeOf(&one.Server)
		for _, object := range []client.Object{claim, serviceOf(&one.Server), bodyOf(&one.Server, &one.Flavor, defaultDev)} {
			hash, err := hashOf(object)
			must(err)
			object.SetAnnotations(map[string]string{applied: hash})
			must(out.Encode(object))
		}
		claim.Status.Phase = corev1.ClaimBound
		one.Server.Status = statusOf(&one.Server, claim, []corev1.Pod{one.Pod})
		must(out.Encode(one.Server))
	}
}
