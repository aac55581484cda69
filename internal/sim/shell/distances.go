package shell

import (
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member/node"
	"github.com/quorate/quorate/internal/transport"
)

// pingPause is how often a process measures the round trips to the other members.
const pingPause = time.Second

// distances are the round trips to other members, kept as package transport keeps them.
type distances struct {
	*Life
	node   *node.Node
	lowest map[consensus.MemberID]*transport.Lowest
}

// ping measures the round trip to each member of the configuration in force.
func (d *distances) ping() {
	d.After(pingPause, d.ping)
	sent := d.Clock()
	config := d.node.Replica().InForce().Config
	for i := range config.Members {
		if to := config.Members[i].ID; to != d.ID {
			d.Ping(to, func() { d.add(to, d.Clock().Sub(sent)) })
		}
	}
}

func (d *distances) add(to consensus.MemberID, sample time.Duration) {
	if d.lowest == nil {
		d.lowest = map[consensus.MemberID]*transport.Lowest{}
	}
	if d.lowest[to] == nil {
		d.lowest[to] = &transport.Lowest{}
	}
	d.lowest[to].Add(sample, d.Clock())
}

func (d *distances) get(to consensus.MemberID) (time.Duration, bool) {
	lowest := d.lowest[to]
	if lowest == nil {
		return 0, false
	}
	return lowest.Get(d.Clock())
}
