package controller

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/quorate/quorate/operator/api/v1alpha1"
)

// mostObject is how many bytes of a cluster's object are read: many of its lists have elements of two bytes.
const mostObject = 256 << 10

// unread is a QuorateCluster that the API server has, and that is not read.
type unread struct {
	object *unstructured.Unstructured
	why    error
}

func (u *unread) Error() string {
	return fmt.Sprintf("the QuorateCluster %s is not read: %v", u.object.GetName(), u.why)
}

func unstructuredCluster() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("QuorateCluster"))
	return u
}

// readCluster reads a cluster, of which no field is believed to be as its Go type wants it: the CRD may be an older one, or
// take what Go does not. The error may be an unread.
func readCluster(ctx context.Context, from client.Reader, name types.NamespacedName) (*v1alpha1.QuorateCluster, error) {
	select {
	case reading <- struct{}{}:
		defer func() { <-reading }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	u := unstructuredCluster()
	if err := from.Get(ctx, name, u); err != nil {
		return nil, err
	}
	if err := checkQuantities(u); err != nil {
		return nil, &unread{u, err}
	}
	text, err := json.Marshal(u)
	if err == nil && len(text) > mostObject {
		err = fmt.Errorf("it has %d KiB, and at most %d are read", len(text)>>10, mostObject>>10)
	}
	if err != nil {
		return nil, &unread{u, err}
	}
	c := &v1alpha1.QuorateCluster{}
	if err := json.Unmarshal(text, c); err != nil {
		return nil, &unread{u, err}
	}
	return c, nil
}

// checkQuantities looks at amounts before they are decoded: to decode one may take for ever.
func checkQuantities(u *unstructured.Unstructured) error {
	storage, _, _ := unstructured.NestedMap(u.Object, "spec", "storage")
	if err := checkQuantity("spec.storage.size", storage["size"]); err != nil {
		return err
	}
	for _, kind := range []string{"limits", "requests"} {
		amounts, _, _ := unstructured.NestedMap(u.Object, "spec", "resources", kind)
		for name, amount := range amounts {
			if err := checkQuantity("spec.resources."+kind+"."+name, amount); err != nil {
				return err
			}
		}
	}
	env, _, _ := unstructured.NestedSlice(u.Object, "spec", "env")
	for i, one := range env {
		if variable, ok := one.(map[string]any); ok {
			divisor, _, _ := unstructured.NestedFieldNoCopy(variable, "valueFrom", "resourceFieldRef", "divisor")
			if err := checkQuantity(fmt.Sprintf("spec.env[%d].valueFrom.resourceFieldRef.divisor", i), divisor); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkQuantity(field string, amount any) error {
	if text, ok := amount.(string); ok && !v1alpha1.IsQuantity(text) {
		return fmt.Errorf("%.200s is %.40q, which is no amount: write it as 500m, 1.5, 8Gi or 1e9", field, text)
	}
	return nil
}
