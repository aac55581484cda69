package controller

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/quorate/quorate/operator/internal/decide"
)

// A look asks for the events of at most mostAsked objects that wait without saying why: none is asked about in its first
// soonAsked, which many pods take to start.
const (
	mostAsked = 4
	soonAsked = 10 * time.Second
)

// warnings adds what events say of pods that do not say themselves why they do not start: of a volume that is not mounted, or
// of a claim that no volume is made for. An event is for people: nothing is decided by it.
func (r *Clusters) warnings(ctx context.Context, s *sight) {
	asked := 0
	for i := range s.observed.Pods {
		p := &s.observed.Pods[i]
		pod := s.pods[p.Name]
		age := s.ages.of("pod "+string(pod.UID), "")
		if asked >= mostAsked || p.Leaving || age < soonAsked {
			continue
		}
		var about types.UID
		if claim := s.claims[p.Member]; p.Homeless && claim != nil && claim.Spec.VolumeName == "" {
			about = claim.UID
		} else if silent(p) {
			about = pod.UID
		} else {
			continue
		}
		asked++
		if text := r.warning(ctx, pod.Namespace, about); text != "" && p.Homeless {
			p.Waits += "; its claim: " + text
		} else if text != "" {
			p.Waits = text
		}
	}
}

// silent tells whether a pod has a node, has not started, and does not say why.
func silent(p *decide.Pod) bool {
	return !p.Started && !p.Homeless && !p.Ended &&
		(p.Waits == "" || p.Waits == "ContainerCreating" || p.Waits == "PodInitializing")
}

// warning returns the newest one about an object; empty: there is none, or events cannot be read.
func (r *Clusters) warning(ctx context.Context, namespace string, uid types.UID) string {
	all, err := listed(ctx, r.Read, "events", &corev1.EventList{}, func(l *corev1.EventList) []corev1.Event { return l.Items },
		[]client.ListOption{client.InNamespace(namespace), client.MatchingFields{"involvedObject.uid": string(uid)}})
	if err != nil {
		return ""
	}
	at := func(e *corev1.Event) time.Time {
		last := e.LastTimestamp.Time
		if e.Series != nil && e.Series.LastObservedTime.After(last) {
			last = e.Series.LastObservedTime.Time
		}
		return slices.MaxFunc([]time.Time{last, e.EventTime.Time, e.CreationTimestamp.Time}, time.Time.Compare)
	}
	var newest *corev1.Event
	for i := range all {
		if e := &all[i]; e.Type == corev1.EventTypeWarning && (newest == nil || at(e).After(at(newest))) {
			newest = e
		}
	}
	if newest == nil {
		return ""
	}
	return told(newest.Reason + colon(newest.Message))
}
