package process_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/api/quoratepb"

	"github.com/quorate/quorate/test/history"
)

// member is the command line of `quorate member`, which asks all members of now.
func (e *elastic) member(words ...string) []string {
	var endpoints []string
	for _, n := range e.nodes {
		endpoints = append(endpoints, n.client)
	}
	return append(append([]string{"member"}, words...), "--timeout=20s", "--endpoints="+strings.Join(endpoints, ","))
}

// begin runs a command while the test goes on.
func (e *elastic) begin(args ...string) *node {
	e.t.Helper()
	n := &node{name: "`quorate " + strings.Join(args, " ") + "`", log: filepath.Join(e.dir, fmt.Sprintf("command%d", len(e.gone)))}
	e.run(n, args...)
	e.gone = append(e.gone, n)
	return n
}

// finish waits for such a command to end by itself, and wants its status and words in what it said.
func (e *elastic) finish(n *node, status int, words ...string) {
	e.t.Helper()
	select {
	case <-n.exited:
	case <-time.After(2 * patience):
		e.t.Fatalf("%s goes on", n.name)
	}
	said := tail(n.log, 1<<20)
	if got := n.cmd.ProcessState.ExitCode(); got != status {
		e.t.Fatalf("%s: status %d, want %d:\n%s", n.name, got, status, said)
	}
	for _, want := range words {
		if !strings.Contains(said, want) {
			e.t.Errorf("%s: no %q in:\n%s", n.name, want, said)
		}
	}
}

// enter starts a newcomer by the peer URLs of others.
func (e *elastic) enter(n *node, by ...*node) {
	e.t.Helper()
	var urls []string
	for _, m := range by {
		urls = append(urls, "http://"+m.peer)
	}
	e.run(n, e.joining(n, strings.Join(urls, ","))...)
	if !slices.Contains(e.nodes, n) {
		e.nodes = append(e.nodes, n)
	}
	e.use()
}

// leave moves a node to those that are no members any more.
func (e *elastic) leave(n *node) {
	e.nodes = slices.DeleteFunc(slices.Clone(e.nodes), func(m *node) bool { return m == n })
	e.gone = append(e.gone, n)
	e.use()
}

func (e *elastic) others(than *node) []*node {
	return slices.DeleteFunc(slices.Clone(e.nodes), func(n *node) bool { return n == than })
}

// checkVoters wants exactly the nodes of now in the list of members, every one of them a voter that has told its URLs.
func (e *elastic) checkVoters() {
	e.t.Helper()
	var want, got []string
	for _, n := range e.nodes {
		want = append(want, fmt.Sprintf("%s [http://%s] [%s] learner:false", n.name, n.peer, n.client))
	}
	slices.Sort(want)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for ; ctx.Err() == nil; <-look.C {
		list, err := e.client.MemberList(ctx)
		if err != nil {
			continue
		}
		got = nil
		for _, m := range list.Members {
			got = append(got, fmt.Sprintf("%s %v %v learner:%v", m.Name, m.PeerURLs, m.ClientURLs, m.IsLearner))
		}
		if slices.Sort(got); slices.Equal(got, want) {
			return
		}
	}
	e.t.Fatalf("the members are\n%s\nand not\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
}

// described is what the leader says of its cluster.
func (e *elastic) described() *quoratepb.Cluster {
	e.t.Helper()
	var cluster *quoratepb.Cluster
	until(e.t, "the cluster describes itself", func(ctx context.Context) bool {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		native := quoratepb.NewMembershipClient(e.client.ActiveConnection())
		answer, err := native.Describe(ctx, &quoratepb.DescribeRequest{})
		cluster = answer.GetCluster()
		return err == nil
	})
	return cluster
}

// jobs waits until the cluster tells of so many jobs that fulfil a condition.
func (e *elastic) jobs(what string, count int, met func(jobs []*quoratepb.Job) bool) []*quoratepb.Job {
	e.t.Helper()
	var jobs []*quoratepb.Job
	defer func() {
		if e.t.Failed() {
			e.t.Logf("the jobs were %v", jobs)
		}
	}()
	until(e.t, what, func(ctx context.Context) bool {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		answer, err := quoratepb.NewMembershipClient(e.client.ActiveConnection()).ListJobs(ctx, &quoratepb.ListJobsRequest{})
		if err != nil {
			return false
		}
		jobs = answer.Jobs
		return len(jobs) == count && met(jobs)
	})
	return jobs
}

// job waits until the only job is in one of some phases, or has ended as is said.
func (e *elastic) job(state string, phases ...string) *quoratepb.Job {
	e.t.Helper()
	return e.jobs(fmt.Sprint("the job is ", state, phases), 1, func(jobs []*quoratepb.Job) bool {
		return jobs[0].State == state && (len(phases) == 0 || slices.Contains(phases, jobs[0].Phase))
	})[0]
}

// witness loads some nodes with operations until stop is called, which checks what the clients were told: every
// acknowledged write is there, and the history is linearizable.
func (e *elastic) witness(clients int, nodes ...*node) (stop func() *history.Recorder) {
	e.t.Helper()
	seed := uint64(time.Now().UnixNano())
	e.t.Logf("seed %d", seed)
	record := history.NewRecorder()
	ctx, cancel := context.WithCancel(context.Background())
	var load sync.WaitGroup
	var connected []*clientv3.Client
	for id := range clients {
		client := e.quiet(nodes...)
		connected = append(connected, client)
		random := rand.New(rand.NewPCG(seed, uint64(id)))
		load.Go(func() { history.RunClient(ctx, client, id, random, record) })
	}
	end := sync.OnceFunc(func() {
		cancel()
		load.Wait()
		for _, client := range connected {
			_ = client.Close()
		}
	})
	e.t.Cleanup(end)
	return func() *history.Recorder {
		e.t.Helper()
		until(e.t, "20 writes are acknowledged", func(context.Context) bool { return record.AckedWrites() >= 20 })
		end()
		acked := checkAcknowledged(e.t, e.cluster, record)
		e.t.Logf("%d operations, %d acknowledged writes, %d errors", record.Len(), acked, len(record.Failures()))
		checkHistory(e.t, record)
		return record
	}
}
