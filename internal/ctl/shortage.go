package ctl

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/progress"
	"github.com/quorate/quorate/internal/ctl/survey"
)

// knownPatience is how long a member may take to tell what it knows by itself.
const knownPatience = 2 * time.Second

// known is the cluster as a member knows it, which needs no leader; nil: none tells. That of the latest term is asked first.
func known(ctx context.Context, c *command.Connection, members []survey.Member) *quoratepb.Cluster {
	ctx, cancel := context.WithTimeout(ctx, knownPatience)
	defer cancel()
	for _, m := range latestFirst(members) {
		client, err := c.Dial(ctx, []string{m.Endpoint})
		if err != nil {
			continue
		}
		cluster := knownTo(ctx, client)
		_ = client.Close() // what it said is here
		if cluster != nil {
			return cluster
		}
	}
	return nil
}

// latestFirst are the members that answer, the latest term and log first: one that a recovery has dropped, or that is behind,
// knows a configuration that is not in force any more.
func latestFirst(members []survey.Member) []survey.Member {
	up := slices.DeleteFunc(slices.Clone(members), func(m survey.Member) bool { return m.Role == survey.Down })
	slices.SortStableFunc(up, func(a, b survey.Member) int {
		return cmp.Or(cmp.Compare(b.Term, a.Term), cmp.Compare(b.Index, a.Index))
	})
	return up
}

func knownTo(ctx context.Context, client *clientv3.Client) *quoratepb.Cluster {
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
	up, down []string // dataless ones are neither
	dataless []string
}

func (g *group) needs() int { return len(g.all())/2 + 1 }

func (g *group) all() []string { return slices.Concat(g.up, g.down, g.dataless) }

// datalessWords are what processes say of themselves that run in the name of a member and can not vote with what it had. Those
// that wait to found or to join a cluster say other things.
var datalessWords = []string{"has lost its disk", "this process is no member any more", "is no member of cluster",
	"this process is no member yet: it is not ", "refused this member"}

// isDataless reports whether a member is down because a process runs in its place that does not have its data, by what it says.
func isDataless(why string) bool {
	return slices.ContainsFunc(datalessWords, func(words string) bool { return strings.Contains(why, words) })
}

// groupsOf returns the voters of a configuration, in two groups while it is joint: each needs its own majority.
func groupsOf(cluster *quoratepb.Cluster, members []survey.Member, dataless []string) []group {
	answers := map[uint64]bool{}
	for _, m := range members {
		answers[m.ID] = answers[m.ID] || m.Role != survey.Down
	}
	before, after := group{title: "the voters before the change"}, group{title: "the voters after it"}
	add := func(g *group, m *quoratepb.Member) {
		switch name := progress.Name(m); {
		case answers[m.Id]:
			g.up = append(g.up, name)
		case slices.Contains(dataless, name):
			g.dataless = append(g.dataless, name)
		default:
			g.down = append(g.down, name)
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
		after.title = "its voters"
		return []group{after}
	}
	return []group{before, after}
}

// shortage says which voters lack a majority; empty: none does, or it is not known. dataless are the names of members in whose
// place a process without their data runs.
func shortage(cluster *quoratepb.Cluster, members []survey.Member, dataless []string) string {
	if cluster == nil {
		return ""
	}
	groups := groupsOf(cluster, members, dataless)
	var needed, lacks, lost []string
	for i := range groups {
		g := &groups[i]
		needed = append(needed, fmt.Sprintf("%d of %s (%s)", g.needs(), g.title, strings.Join(g.all(), ", ")))
		missing := g.needs() - len(g.up)
		if missing <= 0 {
			continue
		}
		words := fmt.Sprintf("of %s %d answer: start %d more of %s", g.title, len(g.up), missing, strings.Join(g.down, ", "))
		if len(g.down) < missing { // the others can not vote
			words = fmt.Sprintf("of %s %d answer", g.title, len(g.up))
			lost = append(lost, g.dataless...)
		}
		if len(g.dataless) > 0 {
			words += "; " + withoutData(g.dataless)
		}
		lacks = append(lacks, words)
	}
	if len(lacks) == 0 {
		return ""
	}
	words := "the cluster has no leader: nothing can be written until " + strings.Join(needed, " and ") + " are up; " +
		strings.Join(lacks, ", and ")
	if len(groups) > 1 {
		words += ". A change of the voters is under way: it needs a majority of both"
	}
	return words + lostMajority(groups, lost)
}

func withoutData(names []string) string {
	names = slices.Sorted(slices.Values(names))
	if len(names) == 1 {
		return names[0] + " runs without its data and does not vote"
	}
	return and(names) + " run without their data and do not vote"
}

// lostMajority says what to do if too many voters have lost their data: what loses nothing comes first.
func lostMajority(groups []group, lost []string) string {
	if len(lost) == 0 {
		return ""
	}
	slices.Sort(lost)
	lost = slices.Compact(lost)
	var down []string
	for i := range groups {
		down = append(down, groups[i].down...)
	}
	words := ". Find their data directories first: where one is on a disk that is not mounted, or was moved aside and is not " +
		"older than what the member had, stop that process and start it with that one"
	if len(down) > 0 {
		slices.Sort(down)
		words += "; and start " + and(slices.Compact(down))
	}
	return words + fmt.Sprintf(". If the data of %s are lost for ever, stop these processes, and look at what "+
		"`quorate recover --data-dir ITS-DIR --members-are-lost %s` on a stopped survivor would keep: it asks before it "+
		"changes anything", and(lost), strings.Join(lost, ","))
}

// and joins names as in a sentence.
func and(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
