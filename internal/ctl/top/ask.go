package top

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ranking"
)

// mostMembers is how many members are asked.
const mostMembers = 128

// round asks all members, again and again by the same connections.
type round struct {
	view    *view
	answers command.Answers
	any     *clientv3.Client            // of all endpoints that were named
	members map[string]*clientv3.Client // by endpoint
}

func newRound(v *view) *round { return &round{view: v, members: map[string]*clientv3.Client{}} }

func (r *round) close() {
	for _, client := range r.members {
		client.Close()
	}
	if r.any != nil {
		r.any.Close()
	}
}

// source is what one member answered, or why it did not.
type source struct {
	id       uint64
	name     string
	endpoint string
	answer   *quoratepb.TopAnswer
	err      error
}

// ask asks all members at once. Its error is that of no answer.
func (r *round) ask(ctx context.Context) (*summary, error) {
	if r.any == nil {
		client, err := r.view.Open(ctx)
		if err != nil {
			return nil, err
		}
		r.any = client
	}
	if r.view.through {
		return r.askThrough(ctx)
	}
	bounded, cancel := context.WithTimeout(ctx, r.view.Timeout)
	defer cancel()
	reachable, release := command.CancelIfRefused(bounded, r.any.Endpoints())
	defer release()
	list, err := r.any.MemberList(reachable, clientv3.WithSerializable())
	if err != nil {
		return nil, r.view.Explain(ctx, err, r.any.Endpoints())
	}
	sources := r.sourcesOf(ctx, list.Members)
	asking, cancel := context.WithTimeout(ctx, r.view.Timeout) // the list took its part of the time
	defer cancel()
	var all sync.WaitGroup
	for i := range sources {
		if s := &sources[i]; s.err == nil {
			all.Go(func() { r.askOne(asking, s, r.members[s.endpoint], list.Header.GetClusterId()) })
		}
	}
	all.Wait()
	if !slices.ContainsFunc(sources, func(s source) bool { return s.answer != nil }) {
		return nil, r.noAnswer(ctx, sources)
	}
	return summarize(sources, r.view), nil
}

// sourcesOf are the members of a list, each with a connection or the reason why it has none.
func (r *round) sourcesOf(ctx context.Context, members []*pb.Member) (all []source) {
	for _, m := range members[:min(len(members), mostMembers)] {
		s := source{id: m.ID, name: cmp.Or(m.Name, command.HexID(m.ID))}
		if len(m.ClientURLs) == 0 {
			s.err = errors.New("it never said where it serves clients")
		} else {
			s.endpoint = strings.TrimPrefix(strings.TrimPrefix(m.ClientURLs[0], "http://"), "https://")
			if r.members[s.endpoint] == nil {
				s.err = r.connect(ctx, s.endpoint)
			}
		}
		all = append(all, s)
	}
	return all
}

// connect dials a member, unless nothing listens there.
func (r *round) connect(ctx context.Context, endpoint string) error {
	if err := command.Probe(ctx, endpoint); err != nil {
		return errors.New(command.RootCause(err))
	}
	client, err := r.view.Dial(ctx, []string{endpoint})
	if err == nil {
		r.members[endpoint] = client
	}
	return err
}

func (r *round) askOne(ctx context.Context, s *source, client *clientv3.Client, cluster uint64) {
	answer, err := quoratepb.NewTopClient(client.ActiveConnection()).Get(ctx,
		&quoratepb.TopRequest{By: r.view.Weight(), Window: windows[r.view.window]},
		grpc.MaxCallRecvMsgSize(command.MostAnswer), grpc.ForceCodec(&r.answers))
	switch {
	case err != nil:
		s.err = err
	case answer.GetMemberId() != s.id || answer.GetClusterId() != cluster:
		s.err = fmt.Errorf("it is member %x of cluster %x", answer.GetMemberId(), answer.GetClusterId())
	default:
		s.answer = answer
	}
}

// noAnswer is the error if no member answered: what one said, rather than that another was silent.
func (r *round) noAnswer(ctx context.Context, sources []source) error {
	var endpoints []string
	why := error(nil)
	for _, s := range sources {
		if s.endpoint != "" {
			endpoints = append(endpoints, s.endpoint)
		}
		if why == nil || command.Silent(why) && !command.Silent(s.err) {
			why = s.err
		}
	}
	if why == nil {
		return command.Refused(errors.New("the cluster has no member"))
	}
	if status.Code(why) == codes.Unimplemented {
		return command.Refused(errors.New("no member knows what it works for: all run builds without `quorate top`"))
	}
	return r.view.Explain(ctx, why, endpoints)
}

// summary is what all members answered.
type summary struct {
	*ranking.Summary
	answered []source
	missing  []source
}

// summarize adds what members answered.
func summarize(sources []source, v *view) *summary {
	s := &summary{}
	var answers []*quoratepb.TopAnswer
	for _, one := range sources {
		if one.answer == nil {
			s.missing = append(s.missing, one)
			continue
		}
		s.answered, answers = append(s.answered, one), append(answers, one.answer)
	}
	s.Summary = ranking.Summarize(answers, v.View)
	return s
}

// reason says in words why a member did not answer.
func (s *source) reason() string {
	switch {
	case status.Code(s.err) == codes.Unimplemented:
		return "its build does not count calls"
	case command.Silent(s.err):
		return "it does not answer"
	}
	return command.PlainText(s.err)
}
