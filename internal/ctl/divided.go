package ctl

import (
	"context"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/survey"
)

// apartPatience is how long it may take to learn whether two leaders are of two clusters.
const apartPatience = 2 * time.Second

// oneIDWords say how two clusters come to one id, and what to do.
const oneIDWords = "two clusters have one id, as after former founders were started again with empty directories and the " +
	"--initial-cluster of their units, after two recoveries, or after two restores with one --initial-cluster-token. What is " +
	"written in one is not in the other. Keep clients away from the one that is not to be kept, and stop it. Remove no data " +
	"before you know which of the two has yours"

// divided says what must never be: answers of another cluster, or of two leaders. The members that were listed are of cluster.
// apart tells whether the first of two that name two leaders is of another cluster; else it does not know the later leader yet.
func divided(members []survey.Member, cluster uint64, apart func(earlier, later survey.Member) bool) (texts []string) {
	latest, led := latest(members, cluster)
	told := map[uint64]bool{latest.Leads: true} // by leader
	for _, m := range members {
		switch {
		case m.Role == survey.Down:
		case m.Cluster != cluster:
			texts = append(texts, fmt.Sprintf("TWO CLUSTERS: %s answers at %s for cluster %s, the members listed here are of "+
				"cluster %s. What is written in one is not in the other. Mostly one of them is a single process that lost its "+
				"disk, or was started with another --data-dir, and founded a cluster of its own: keep clients away from that "+
				"one, and stop it. Remove no data before you know which of the two has yours", m.Name, m.Endpoint,
				command.HexID(m.Cluster), command.HexID(cluster)))
		case !led || m.Leads == 0 || told[m.Leads]:
		case m.Term == latest.Term && m.Role == survey.Leader:
			told[m.Leads] = true
			texts = append(texts, fmt.Sprintf("TWO LEADERS: %s names %s as the leader in term %d, and %s names %s: %s", at(m),
				command.HexID(m.Leads), m.Term, at(latest), command.HexID(latest.Leads), oneIDWords))
		case apart(m, latest):
			told[m.Leads] = true
			texts = append(texts, fmt.Sprintf("TWO CLUSTERS: %s is of one with leader %s in term %d, and %s of one with "+
				"leader %s in term %d: "+
				"%s", at(m), command.HexID(m.Leads), m.Term, at(latest), command.HexID(latest.Leads), latest.Term,
				oneIDWords))
		case m.Role == survey.Leader:
			texts = append(texts, fmt.Sprintf("TWO LEADERS: %s says that it leads in term %d, and %s leads in term %d. If the "+
				"former was cut off, it steps down within an election timeout. If this lasts, do not wait: ask `quorate "+
				"status` again, and see their logs", at(m), m.Term, command.HexID(latest.Leads), latest.Term))
		}
	}
	return texts
}

func at(m survey.Member) string { return m.Name + " at " + m.Endpoint }

// latest is a member that names the leader of the latest term, the leader itself if it answers.
func latest(members []survey.Member, cluster uint64) (latest survey.Member, led bool) {
	for _, m := range members {
		if m.Role == survey.Down || m.Cluster != cluster || m.Leads == 0 {
			continue
		}
		if !led || m.Term > latest.Term || m.Term == latest.Term && m.Role == survey.Leader && latest.Role != survey.Leader {
			latest, led = m, true
		}
	}
	return latest, led
}

// apart reports whether two members are of two clusters. In one cluster no candidate finds a quorum in a term once a later one
// has a leader, and a term has one leader; and two configurations of one cluster that are in force at once have members in
// common.
func apart(ctx context.Context, c *command.Connection, earlier, later survey.Member) bool {
	ctx, cancel := context.WithTimeout(ctx, apartPatience)
	defer cancel()
	one, err := c.Dial(ctx, []string{earlier.Endpoint})
	if err != nil {
		return false
	}
	defer one.Close()
	led, err := one.Status(ctx, later.Endpoint)
	if err != nil || led.Leader == 0 {
		return false
	}
	if _, err := one.MemberList(ctx); err == nil { // with a quorum
		now, err := one.Status(ctx, earlier.Endpoint)
		if err != nil || now.RaftTerm != led.RaftTerm {
			return err == nil && now.RaftTerm < led.RaftTerm
		}
		return now.Leader != 0 && now.Leader != led.Leader
	}
	return strangers(ctx, c, earlier.Endpoint, later.Endpoint)
}

// strangers reports whether two members know no member in common.
func strangers(parent context.Context, c *command.Connection, endpoints ...string) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(parent), apartPatience)
	defer cancel()
	var lists [][]uint64
	for _, endpoint := range endpoints {
		client, err := c.Dial(ctx, []string{endpoint})
		if err != nil {
			return false
		}
		answer, err := client.MemberList(ctx, clientv3.WithSerializable())
		_ = client.Close()
		if err != nil || len(answer.Members) == 0 {
			return false
		}
		var ids []uint64
		for _, m := range answer.Members {
			ids = append(ids, m.ID)
		}
		lists = append(lists, ids)
	}
	return !slices.ContainsFunc(lists[0], func(id uint64) bool { return slices.Contains(lists[1], id) })
}
