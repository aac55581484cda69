package controller

import (
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/quorate/quorate/operator/internal/members"
)

// SetUp adds the controllers to a manager, and their gauges to what /metrics serves.
func SetUp(mgr ctrl.Manager) error {
	clusters := &Clusters{Client: mgr.GetClient(), Read: mgr.GetAPIReader(), Events: mgr.GetEventRecorder("quorate-operator"),
		Open: openGroup, Now: time.Now}
	if err := clusters.SetUp(mgr); err != nil {
		return err
	}
	if err := metrics.Registry.Register(&Gauges{Clusters: mgr.GetCache()}); err != nil {
		return err
	}
	return (&Restores{Client: mgr.GetClient(), Read: mgr.GetAPIReader()}).SetUp(mgr)
}

func openGroup(seats []members.Seat, a members.Access) (Cluster, error) {
	return members.Open(seats, a)
}
