package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/quorate/quorate/operator/internal/decide"
	"github.com/quorate/quorate/operator/internal/members"
)

// Cluster asks the members of a cluster. It is *members.Group but in tests.
type Cluster interface {
	Look(ctx context.Context, cluster uint64, newest decide.Epoch) *members.View
	Gauges(ctx context.Context) []members.Gauge
	Ask(ctx context.Context, v *members.View, a decide.Action, peerURL string) error
	Users(ctx context.Context, u members.Users) error
	Backup(ctx context.Context, want *members.Backup) (*members.BackupState, error)
	Close()
}

// Clusters reconciles QuorateCluster.
type Clusters struct {
	client.Client               // writes
	Read          client.Reader // without a cache
	Events        events.EventRecorder
	Open          func(seats []members.Seat, a members.Access) (Cluster, error)
	Now           func() time.Time
	told          sync.Map // name of a cluster → when its status was written
	shares        shares
	ages          sync.Map // name of a cluster → what its pods and jobs were at the last look, and since when: see ages
}

// othersError is that of an object of somebody else which has the name of one that the cluster needs.
func othersError(there client.Object) error {
	return fmt.Errorf("%s exists and is not of this cluster: delete or rename it, or give the cluster another name",
		there.GetName())
}
