package controller

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Ensure that of an object that is watched little is kept, and what leads to its cluster is.
func TestKeepLittle(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	pod := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "kv-1", Namespace: "ns", ResourceVersion: "7", UID: "u",
		Labels: map[string]string{"a": long}, Annotations: map[string]string{"b": long}, Finalizers: []string{long},
		OwnerReferences: []metav1.OwnerReference{{Kind: long}, {Kind: "QuorateCluster", Name: "kv", Controller: new(true)}}}}
	if _, err := keepLittle(pod); err != nil || pod.Size() > 1<<10 || pod.Name != "kv-1" || pod.ResourceVersion != "7" ||
		metav1.GetControllerOf(pod).Name != "kv" {
		t.Errorf("%d bytes, %v: %.200v", pod.Size(), err, pod)
	}
	u := unstructuredCluster()
	u.SetName("kv")
	u.SetGeneration(3)
	u.Object["spec"] = map[string]any{"members": int64(3), "resources": map[string]any{"limits": map[string]any{"memory": "1e1.5"}}}
	conditions := []any{}
	for range 1000 {
		conditions = append(conditions, map[string]any{"type": "Healthy", "status": "True", "message": long[:1000]})
	}
	u.Object["status"] = map[string]any{"conditions": conditions, "healthyMembers": int64(2)}
	got, err := keepLittle(u)
	if err != nil {
		t.Fatal(err)
	}
	text, err := got.(interface{ MarshalJSON() ([]byte, error) }).MarshalJSON()
	if err != nil || len(text) > 10<<10 || !strings.Contains(string(text), `"members":3`) || !strings.Contains(string(text), `"healthyMembers":2`) ||
		!strings.Contains(string(text), `"generation":3`) || strings.Contains(string(text), "1e1.5") {
		t.Errorf("%d bytes, %v: %.300s", len(text), err, text)
	}
}
