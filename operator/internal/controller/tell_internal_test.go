package controller

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/quorate/quorate/operator/api/v1alpha1"
	"github.com/quorate/quorate/operator/internal/decide"
)

// notes keeps the longest event.
type notes struct{ longest int }

func (n *notes) Eventf(_, _ runtime.Object, _, _, _, note string, args ...any) {
	if note != "%s" || len(args) != 1 {
		panic("an event that is made elsewhere: " + note)
	}
	n.longest = max(n.longest, len(args[0].(string)))
}

// Ensure that no event is longer than the API server takes, whatever is told: it would be lost without a word.
func TestClusters_tell_long(t *testing.T) {
	long := strings.Repeat("no node takes its pod: ä ", 200)
	for name, make := range map[string]func(r *Clusters){
		"of an action":        func(r *Clusters) { r.tell(&v1alpha1.QuorateCluster{}, decide.Action{Why: long}, nil) },
		"of a failed action":  func(r *Clusters) { r.tell(&v1alpha1.QuorateCluster{}, decide.Action{}, errors.New(long)) },
		"of whatever else is": func(r *Clusters) { r.event(&v1alpha1.QuorateCluster{}, corev1.EventTypeWarning, "A", "B", long) },
	} {
		n := &notes{}
		if make(&Clusters{Events: n}); n.longest == 0 || n.longest > 1024 {
			t.Errorf("%s: an event has %d bytes", name, n.longest)
		}
	}
}
