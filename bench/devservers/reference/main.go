// An operator that makes of a DevServer the objects that Neorion's makes, by the means controller-runtime offers:
// caches with selectors and an index, 32 reconciles at once, no limit of the client's own, writes only what differs.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	applied    = "reference/applied"
	podServer  = "server"
	onFlavor   = "flavor"
	retention  = 7 * 24 * time.Hour
	defaultDev = "any"
	atOnce     = 32
)

type operator struct {
	client.Client
	scripts map[string]string
}

func (o *operator) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var server DevServer
	if err := o.Get(ctx, request.NamespacedName, &server); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if server.DeletionTimestamp != nil {
		return reconcile.Result{}, o.leave(ctx, &server)
	}
	if !controllerutil.ContainsFinalizer(&server, finalizer) {
		before := server.DeepCopyObject().(*DevServer)
		controllerutil.AddFinalizer(&server, finalizer)
		if err := o.Patch(ctx, &server, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return reconcile.Result{}, err
		}
	}
	var flavor DevServerFlavor
	if err := o.Get(ctx, client.ObjectKey{Name: server.Spec.Flavor}, &flavor); err != nil {
		return reconcile.Result{}, err
	}
	claim := homeOf(&server)
	wanted := []client.Object{claim, scriptsOf(server.Namespace, o.scripts), serviceOf(&server), bodyOf(&server, &flavor, defaultDev)}
	for _, object := range wanted {
		if err := o.ensure(ctx, object); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{}, o.tell(ctx, &server)
}

// ensure creates what is missing and updates what was made from another wish, which a hash on it tells.
func (o *operator) ensure(ctx context.Context, wanted client.Object) error {
	hash, err := hashOf(wanted)
	if err != nil {
		return err
	}
	wanted.SetAnnotations(map[string]string{applied: hash})
	standing := wanted.DeepCopyObject().(client.Object)
	err = o.Get(ctx, client.ObjectKeyFromObject(wanted), standing)
	if apierrors.IsNotFound(err) {
		return ignoreExists(o.Create(ctx, wanted))
	}
	if err != nil || standing.GetAnnotations()[applied] == hash {
		return err
	}
	wanted.SetResourceVersion(standing.GetResourceVersion())
	return o.Update(ctx, wanted)
}

func (o *operator) tell(ctx context.Context, server *DevServer) error {
	var claim corev1.PersistentVolumeClaim
	home := &claim
	if err := o.Get(ctx, client.ObjectKey{Namespace: server.Namespace, Name: server.Name + "-home"}, home); err != nil {
		home = nil
	}
	var pods corev1.PodList
	if err := o.List(ctx, &pods, client.InNamespace(server.Namespace), client.MatchingFields{podServer: server.Name}); err != nil {
		return err
	}
	before := server.DeepCopyObject().(*DevServer)
	server.Status = statusOf(server, home, pods.Items)
	if equality.Semantic.DeepEqual(before.Status, server.Status) {
		return nil
	}
	return o.Status().Patch(ctx, server, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

func (o *operator) leave(ctx context.Context, server *DevServer) error {
	var claim corev1.PersistentVolumeClaim
	err := o.Get(ctx, client.ObjectKey{Namespace: server.Namespace, Name: server.Name + "-home"}, &claim)
	if err == nil && claim.Annotations[deleteAfter] == "" {
		before := claim.DeepCopy()
		claim.Annotations[deleteAfter] = time.Now().Add(retention).UTC().Format(time.RFC3339)
		err = o.Patch(ctx, &claim, client.MergeFrom(before))
	}
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	before := server.DeepCopyObject().(*DevServer)
	controllerutil.RemoveFinalizer(server, finalizer)
	return client.IgnoreNotFound(o.Patch(ctx, server, client.MergeFrom(before)))
}

func (o *operator) onFlavor(ctx context.Context, flavor client.Object) []reconcile.Request {
	var servers DevServerList
	if err := o.List(ctx, &servers, client.MatchingFields{onFlavor: flavor.GetName()}); err != nil {
		return nil
	}
	requests := make([]reconcile.Request, len(servers.Items))
	for i := range servers.Items {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&servers.Items[i])
	}
	return requests
}

func serverOf(_ context.Context, child client.Object) []reconcile.Request {
	name, found := child.GetLabels()[serverLabel]
	if !found {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: child.GetNamespace(), Name: name}}}
}

func hashOf(wanted client.Object) (string, error) {
	text, err := json.Marshal(wanted)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), err
}

func ignoreExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func must(err error) {
	if err != nil {
		log.Log.Error(err, "the reference ends")
		os.Exit(1)
	}
}

func caches(namespace string) cache.Options {
	has := func(label string) cache.ByObject {
		selector, err := labels.Parse(label)
		must(err)
		return cache.ByObject{Label: selector}
	}
	return cache.Options{
		DefaultNamespaces: map[string]cache.Config{namespace: {}},
		ByObject: map[client.Object]cache.ByObject{
			&corev1.PersistentVolumeClaim{}: has(homeLabel),
			&corev1.ConfigMap{}:             has(scriptsLabel),
			&corev1.Service{}:               has(serverLabel),
			&corev1.Pod{}:                   has(serverLabel),
			&appsv1.Deployment{}:            has(serverLabel),
		},
		DefaultTransform: cache.TransformStripManagedFields(),
	}
}

// reference KUBECONFIG NAMESPACE SCRIPTS, where SCRIPTS is a JSON object of file names and contents; or reference rest.
func main() {
	if os.Args[1] == "rest" {
		atRest()
		return
	}
	log.SetLogger(zap.New(zap.UseDevMode(false)))
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	must(err)
	config.QPS = -1
	scheme := runtime.NewScheme()
	must(clientgoscheme.AddToScheme(scheme))
	register(scheme)
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Cache: caches(os.Args[2]), Metrics: metricsserver.Options{BindAddress: "0"},
	})
	must(err)
	made := &operator{Client: manager.GetClient()}
	must(json.Unmarshal([]byte(os.Args[3]), &made.scripts))
	ctx := ctrl.SetupSignalHandler()
	indexer := manager.GetFieldIndexer()
	must(indexer.IndexField(ctx, &corev1.Pod{}, podServer, func(pod client.Object) []string {
		return []string{pod.GetLabels()[serverLabel]}
	}))
	must(indexer.IndexField(ctx, &DevServer{}, onFlavor, func(server client.Object) []string {
		return []string{server.(*DevServer).Spec.Flavor}
	}))
	must(ctrl.NewControllerManagedBy(manager).
		For(&DevServer{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(serverOf)).
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(serverOf)).
		Watches(&DevServerFlavor{}, handler.EnqueueRequestsFromMapFunc(made.onFlavor)).
		WithOptions(controller.Options{MaxConcurrentReconciles: atOnce}).
		Complete(made))
	must(manager.Start(ctx))
}
