package controller_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/quorate/quorate/operator/api/v1alpha1"
	"github.com/quorate/quorate/operator/internal/controller"
	"github.com/quorate/quorate/operator/internal/objects"
)

// Ensure that the command that accepts a loss, as it is pasted, accepts nothing that was accepted beside a former one.
func TestReconcile_consentCommand(t *testing.T) {
	f := start(t, interceptor.Funcs{}, nil)
	f.found()
	c := f.cluster()
	c.Spec.Recovery = &v1alpha1.Recovery{AcceptLossAfter: 1, Loss: "abc", UncomparedLoss: "abc"}
	f.must(f.Update(t.Context(), c))
	f.must(f.step(2))
	id := f.loseTwo()
	patch := strings.Split(f.cluster().Status.QuorumLoss.Consent, "'")[1]
	f.must(f.Patch(t.Context(), f.cluster(), client.RawPatch(types.MergePatchType, []byte(patch))))
	if r := f.cluster().Spec.Recovery; r.Loss != id || r.UncomparedLoss != "" {
		t.Errorf("%+v", r)
	}
}

// Ensure that a member that a recovery left out, and that is recovered itself later, is left out no more.
func TestReconcile_recoveredAgain(t *testing.T) {
	f := start(t, interceptor.Funcs{}, nil)
	f.found()
	names := []string{f.pods()[0].Name, f.pods()[1].Name, f.pods()[2].Name}
	c := f.cluster()
	c.Status.Dropped = names[:2]
	f.must(f.Status().Update(t.Context(), c))
	claim := f.claim(names[0]) // as the page says
	claim.Annotations[objects.AnnotationLeaves] = strings.Join(names[1:], ",")
	f.must(f.Update(t.Context(), claim))
	f.recovered(names[0])
	f.must(f.step(2))
	if st := f.cluster().Status; st.Recovery == nil || !st.Recovery.Done || slices.Contains(st.Dropped, names[0]) ||
		!slices.Contains(st.Dropped, names[1]) || !slices.Contains(st.Dropped, names[2]) {
		t.Errorf("%+v, dropped %v", st.Recovery, st.Dropped)
	}
}

// Ensure that claims that members of 1.0 leave behind are told.
func TestReconcile_claimsKept(t *testing.T) {
	f := start(t, interceptor.Funcs{}, nil)
	f.found()
	f.must(f.step(1))
	if at := meta.FindStatusCondition(f.cluster().Status.Conditions, controller.ClaimsKept); at != nil {
		t.Errorf("no claim is kept: %+v", at)
	}
	claim := f.claim(f.pods()[0].Name).DeepCopy()
	claim.Name, claim.UID, claim.ResourceVersion = claim.Name+"0", "", ""
	delete(claim.Annotations, objects.AnnotationEpoch)
	claim.Labels[objects.LabelMember] = claim.Name
	claim.Annotations[objects.AnnotationUsed] = "true"
	f.must(f.Create(t.Context(), claim))
	f.must(f.step(1))
	at := meta.FindStatusCondition(f.cluster().Status.Conditions, controller.ClaimsKept)
	if at == nil || !strings.Contains(at.Message, claim.Name) || !strings.Contains(at.Message, "run 1.1 or later") {
		t.Errorf("%+v", at)
	}
}
