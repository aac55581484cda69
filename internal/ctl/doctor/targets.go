package doctor

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/quorate/quorate/internal/ctl/command"
)

// target is a member to ask.
type target struct {
	id       uint64
	name     string
	endpoint string // empty: it never said where it serves clients
}

// targetsOf are the members of a list, as far as it may be long.
func targetsOf(members []*pb.Member) (all []target) {
	for _, m := range members {
		t := target{id: m.ID, name: m.Name}
		if t.name == "" {
			t.name = command.HexID(m.ID)
		}
		if len(m.ClientURLs) > 0 {
			t.endpoint = command.Bare(m.ClientURLs[0])
		}
		all = append(all, t)
	}
	return all[:min(len(all), mostMembers)]
}

// mostMembers is how many members are asked.
const mostMembers = 128
