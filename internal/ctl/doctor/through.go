package doctor

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/command"
)

// collect asks the members, or one of them for all.
func (p *patient) collect(ctx context.Context) (*quoratepb.Collected, error) {
	if !p.through {
		return collect(ctx, p.Connection)
	}
	client, err := p.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	bounded, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	reachable, release := command.CancelIfRefused(bounded, client.Endpoints())
	defer release()
	all, err := quoratepb.NewDoctorClient(client.ActiveConnection()).Collect(reachable, &quoratepb.CollectRequest{},
		grpc.MaxCallRecvMsgSize(mostCollected), grpc.ForceCodec(&command.Answers{}))
	switch {
	case status.Code(err) == codes.Unimplemented:
		return nil, command.Refused(errors.New("this member runs a build that does not ask the others: leave " +
			"--through-member out, or name another member"))
	case err != nil:
		return nil, p.Explain(ctx, err, client.Endpoints())
	}
	return all, nil
}
