package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

const maxWatches = 64

// comparison asks both clusters.
type comparison struct {
	clusters                         [2]*cluster
	members                          int
	requests, most                   int // stop after so many, or after so many differences
	draw                             drawer
	asked, failed, events, different int
}

func (c *comparison) run(ctx context.Context) error {
	if c.draw.users {
		if err := c.prepareUsers(ctx); err != nil {
			return err
		}
	}
	for c.asked < c.requests && c.different < c.most {
		if c.draw.rng.Intn(60) == 0 && len(c.clusters[0].streams) < maxWatches {
			if err := c.watch(ctx); err != nil {
				return err
			}
			continue
		}
		c.ask(ctx, c.draw.request(), c.draw.rng.Intn(c.members), c.draw.user())
	}
	return c.compareWatches(ctx)
}

// ask sends a request to a member of each cluster and compares the answers.
func (c *comparison) ask(ctx context.Context, r request, member int, user string) {
	answers := [2]string{}
	for i, cluster := range c.clusters {
		answer, revision, ok := cluster.call(ctx, r, member, user)
		answers[i] = answer
		if i == 0 {
			if c.asked++; !ok {
				c.failed++
			}
			c.draw.learn(revision)
		}
	}
	if answers[0] != answers[1] {
		c.different++
		fmt.Printf("request %d, %s by %q at member %d: %s\n  etcd:    %s\n  quorate: %s\n",
			c.asked, r.method, user, member, prototext.Format(r.message), answers[0], answers[1])
	}
	if r.changesUsers && answers[0][:2] == "ok" {
		c.logIn(ctx)
	}
}

// call makes one call and returns what it answers as text, whose beginning says whether it succeeded.
func (c *cluster) call(ctx context.Context, r request, member int, user string) (answer string, revision int64, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if strings.HasPrefix(r.method, leases) { // members list them, and date answers, by what they have applied
		read := &pb.RangeRequest{Key: []byte(lastKey)}
		if _, err := pb.NewKVClient(c.conns[member]).Range(c.as(ctx, "root"), read); err != nil {
			return "error before the call: " + err.Error(), 0, false
		}
	}
	response := r.response.ProtoReflect().New().Interface()
	if err := c.conns[member].Invoke(c.as(ctx, user), r.method, r.message, response); err != nil {
		s := status.Convert(err)
		return fmt.Sprintf("error %s: %s", s.Code(), s.Message()), 0, false
	}
	if h, has := response.(interface{ GetHeader() *pb.ResponseHeader }); has {
		revision = h.GetHeader().GetRevision()
	}
	settle(response)
	packed, err := proto.MarshalOptions{Deterministic: true}.Marshal(response)
	if err != nil {
		return "error " + err.Error(), 0, false
	}
	return fmt.Sprintf("ok %x %v", packed, response), revision, true
}

// settle gives fixed values to what belongs to a cluster or a clock, and an order to what has none.
func settle(response proto.Message) {
	m := response.ProtoReflect()
	if f := m.Descriptor().Fields().ByName("header"); f != nil && m.Has(f) {
		header := m.Get(f).Message()
		for _, name := range []protoreflect.Name{"cluster_id", "member_id", "raft_term"} {
			header.Clear(header.Descriptor().Fields().ByName(name))
		}
	}
	switch r := response.(type) {
	case *pb.AuthenticateResponse:
		r.Token = ""
	case *pb.LeaseTimeToLiveResponse:
		if r.TTL > 0 {
			r.TTL = r.GrantedTTL
		}
		slices.SortFunc(r.Keys, bytes.Compare)
	case *pb.LeaseLeasesResponse:
		slices.SortFunc(r.Leases, func(a, b *pb.LeaseStatus) int { return int(a.ID - b.ID) })
	}
}

// prepareUsers makes root and two users, and turns users on.
func (c *comparison) prepareUsers(ctx context.Context) error {
	for _, name := range []string{"root", "one", "two"} {
		user := &pb.AuthUserAddRequest{Name: name, Password: name}
		c.ask(ctx, changesUsers("UserAdd", user, &pb.AuthUserAddResponse{}), 0, "")
		c.ask(ctx, changesUsers("RoleAdd", &pb.AuthRoleAddRequest{Name: name}, &pb.AuthRoleAddResponse{}), 0, "")
		c.ask(ctx, changesUsers("UserGrantRole", &pb.AuthUserGrantRoleRequest{User: name, Role: name},
			&pb.AuthUserGrantRoleResponse{}), 0, "")
	}
	c.ask(ctx, changesUsers("AuthEnable", &pb.AuthEnableRequest{}, &pb.AuthEnableResponse{}), 0, "")
	if c.different > 0 {
		return fmt.Errorf("users cannot be made alike")
	}
	return nil
}

// logIn logs all users in: etcd refuses tokens that are older than its users.
func (c *comparison) logIn(ctx context.Context) {
	for _, cluster := range c.clusters {
		for _, name := range []string{"root", "one", "two"} {
			login := &pb.AuthenticateRequest{Name: name, Password: name}
			answer, err := pb.NewAuthClient(cluster.conns[0]).Authenticate(ctx, login)
			if err == nil {
				cluster.tokens[name] = answer.Token
			}
		}
	}
}

// watch begins a watch of both clusters, and waits until each has sent what is there already: what is compacted before that
// differs by chance.
func (c *comparison) watch(ctx context.Context) error {
	r, member := c.draw.watch(), c.draw.rng.Intn(c.members)
	for _, cluster := range c.clusters {
		stream, err := pb.NewWatchClient(cluster.conns[member]).Watch(cluster.as(ctx, "root"))
		if err != nil {
			return err
		}
		if err = stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: r}}); err != nil {
			return err
		}
		w := &watchStream{stream: stream}
		fmt.Fprintf(&w.said, "%v\n", r)
		if err = w.receive(1, 0); err != nil {
			return err
		}
		cluster.streams = append(cluster.streams, w)
		last, err := cluster.putLast(ctx)
		if err != nil {
			return err
		}
		if err = w.receive(0, last); err != nil {
			return err
		}
	}
	return nil
}

// compareWatches compares what all watches said up to a last key.
func (c *comparison) compareWatches(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for i, cluster := range c.clusters {
		last, err := cluster.putLast(ctx)
		if err != nil {
			return err
		}
		for n, w := range cluster.streams {
			if err = w.receive(0, last); err != nil {
				return fmt.Errorf("watch %d of cluster %d: %w; it said %s", n, i, err, w.said.String())
			}
		}
	}
	for n, w := range c.clusters[0].streams {
		c.events += w.events
		if other := c.clusters[1].streams[n]; w.said.String() != other.said.String() {
			c.different++
			fmt.Printf("watch %d: %s", n, firstDifference(w.said.String(), other.said.String()))
		}
	}
	return nil
}
