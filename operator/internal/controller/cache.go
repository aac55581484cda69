package controller

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/quorate/quorate/operator/internal/objects"
)

// mostConditions is how many conditions of a cluster are kept, which are the operator's and the doctor's findings.
const mostConditions = 128

// Cache is what a manager keeps of the objects that it watches, in some namespaces or, without any, in all: of each only what
// says that its cluster is to be looked at, and what the gauges tell. A look reads its objects by itself.
func Cache(namespaces ...string) cache.Options {
	own := cache.ByObject{Label: labels.SelectorFromSet(objects.Managed())}
	o := cache.Options{DefaultTransform: keepLittle, ByObject: map[client.Object]cache.ByObject{
		&corev1.Pod{}: own, &corev1.PersistentVolumeClaim{}: own, &policyv1.PodDisruptionBudget{}: own}}
	for _, name := range namespaces {
		if o.DefaultNamespaces == nil {
			o.DefaultNamespaces = map[string]cache.Config{}
		}
		o.DefaultNamespaces[name] = cache.Config{}
	}
	return o
}

// keepLittle takes off an object what nothing reads in the cache. It is called with each one before it is kept.
func keepLittle(object any) (any, error) {
	switch o := object.(type) {
	case *metav1.PartialObjectMetadata:
		kept := metav1.ObjectMeta{Name: o.Name, Namespace: o.Namespace, UID: o.UID, ResourceVersion: o.ResourceVersion,
			Generation: o.Generation, DeletionTimestamp: o.DeletionTimestamp}
		if owner := metav1.GetControllerOf(o); owner != nil {
			kept.OwnerReferences = []metav1.OwnerReference{*owner}
		}
		o.ObjectMeta = kept
	case *unstructured.Unstructured:
		members, _, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "members")
		healthy, _, _ := unstructured.NestedFieldNoCopy(o.Object, "status", "healthyMembers")
		all, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		conditions := []any{}
		for _, one := range all[:min(len(all), mostConditions)] {
			if at, ok := one.(map[string]any); ok {
				conditions = append(conditions, map[string]any{"type": at["type"], "status": at["status"]})
			}
		}
		kept := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"members": members},
			"status": map[string]any{"healthyMembers": healthy, "conditions": conditions}}}
		kept.SetGroupVersionKind(o.GroupVersionKind())
		kept.SetName(o.GetName())
		kept.SetNamespace(o.GetNamespace())
		kept.SetUID(o.GetUID())
		kept.SetResourceVersion(o.GetResourceVersion())
		kept.SetGeneration(o.GetGeneration())
		kept.SetDeletionTimestamp(o.GetDeletionTimestamp())
		return kept, nil
	}
	return object, nil
}
