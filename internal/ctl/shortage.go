package ctl

import (
	"context"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/progress"
	"github.com/quorate/quorate/internal/ctl/survey"
)

// knownPatience is how long a member may take to tell what it knows by itself.
const knownPatience = 2 * time.Second

// known is the cluster as a member knows it, which needs no leader; nil: none tells.
func known(ctx context.Context, client *clientv3.Client) *quoratepb.Cluster {
	ctx, cancel := context.WithTimeout(ctx, knownPatience)
	defer cancel()
	stream, err := quoratepb.NewMembershipClient(client.ActiveConnection()).Watch(ctx, &quoratepb.WatchRequest{})
	if err != nil {
		return nil
	}
	event, err := stream.Recv()
	if err != nil {
		return nil
	}
	return event.GetCluster()
}

// group is voters that decide by their majority.
type group struct {
	title    string
	up, down []string
}

func (g *group) needs() int { return (len(g.up)+len(g.down))/2 + 1 }

// groupsOf returns the voters of a configuration, in two groups while it is joint: each needs its own majority.
func groupsOf(cluster *quoratepb.Cluster, members []survey.Member) []group {
	answers := map[uint64]bool{}
	for _, m := range members {
		answers[m.ID] = answers[m.ID] || m.Role != survey.Down
	}
	before, after := group{title: "the voters before the change"}, group{title: "the voters after it"}
	add := func(g *group, m *quoratepb.Member) {
		if answers[m.Id] {
			g.up = append(g.up, progress.Name(m))
		} else {
			g.down = append(g.down, progress.Name(m))
		}
	}
	for _, m := range cluster.GetMembers() {
		switch m.Role {
		case quoratepb.Role_ROLE_VOTER:
			add(&before, m)
			add(&after, m)
		case quoratepb.Role_ROLE_INCOMING:
			add(&after, m)
		case quoratepb.Role_ROLE_OUTGOING, quoratepb.Role_ROLE_DEMOTING:
			add(&before, m)
		}
	}
	if !cluster.GetJoint() {
		return []group{{"its voters", after.up, after.down}}
	}
	return []group{before, after}
}

// shortage says which voters lack a majority; empty: none does, or nobody knows.
func shortage(cluster *quoratepb.Cluster, members []survey.Member) string {
	if cluster == nil {
		return ""
	}
	groups := groupsOf(cluster, members)
	var needed, lacks []string
	for i := range groups {
		g := &groups[i]
		needed = append(needed, fmt.Sprintf("%d of %s (%s)", g.needs(), g.title, strings.Join(append(g.up[:len(g.up):len(g.up)],
			g.down...), ", ")))
		if missing := g.needs() - len(g.up); missing > 0 {
			lacks = append(lacks, fmt.Sprintf("of %s %d answer: start %d more of %s", g.title, len(g.up), missing,
				strings.Join(g.down, ", ")))
		}
	}
	if len(lacks) == 0 {
		return ""
	}
	words := "the cluster has no leader: nothing can be written until " + strings.Join(needed, " and ") + " are up; " +
		strings.Join(lacks, ", and ")
	if len(groups) > 1 {
		words += ". A change of the voters is under way: it needs a majority of both"
	}
	return words
}
