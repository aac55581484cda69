// Package life decides what happens in the life of a pod: which container starts or stops next, when, and what the pod's
// status says of it. It is pure: it has no clock, no processes and no API, and is told what was observed.
//
// It follows the kubelet in: order of init containers, sidecars among them, restart policies, back-off, thresholds of
// probes, phases, conditions, and the end of a pod. It differs in its times: a crashed container starts again after
// Backoff, not after 10 seconds. It knows no lifecycle hooks, ephemeral containers, readiness gates, or resize in place.
package life
