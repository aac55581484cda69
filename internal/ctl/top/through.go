package top

import (
	"cmp"
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/doctor"
)

// mostThrough bounds the answer of a member for all, in bytes.
const mostThrough = 4 << 20

// askThrough asks one member for all.
func (r *round) askThrough(ctx context.Context) (*summary, error) {
	bounded, cancel := context.WithTimeout(ctx, r.view.Timeout)
	defer cancel()
	reachable, release := command.CancelIfRefused(bounded, r.any.Endpoints())
	defer release()
	said, err := quoratepb.NewTopClient(r.any.ActiveConnection()).Get(reachable,
		&quoratepb.TopRequest{By: r.view.Weight(), Window: windows[r.view.window], AllMembers: true},
		grpc.MaxCallRecvMsgSize(mostThrough), grpc.ForceCodec(&r.answers))
	switch {
	case status.Code(err) == codes.Unimplemented, err == nil && len(said.GetMembers()) == 0:
		return nil, command.Refused(errors.New("this member runs a build that does not ask the others: leave " +
			"--through-member out, or name another member"))
	case err != nil:
		return nil, r.view.Explain(ctx, err, r.any.Endpoints())
	}
	var sources []source
	for _, m := range said.GetMembers() {
		s := source{id: m.GetId(), name: cmp.Or(m.GetName(), command.HexID(m.GetId())), answer: m.GetAnswer()}
		switch {
		case m.GetFault() == doctor.FaultUnsupported:
			s.answer, s.err = nil, status.Error(codes.Unimplemented, m.GetFaultText())
		case m.GetFault() != "" || s.answer == nil:
			s.answer, s.err = nil, errors.New(cmp.Or(m.GetFaultText(), "it does not answer"))
		}
		sources = append(sources, s)
	}
	return summarize(sources, r.view), nil
}
