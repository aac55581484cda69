package member

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/broadcast"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/wording"
)

// errNoMembership is a server without the native membership API.
var errNoMembership = errors.New("this server has no membership API of its own: it is an etcd; only " +
	"list, and add, remove, promote and update of one member, work with it")

// errStale is a refusal because another configuration is in force than the one that a plan was made for.
var errStale = errors.New("the members have changed since the plan was made")

// retryPause is how long a request that met no leader, or a stream that broke, waits before it tries again.
const retryPause = 250 * time.Millisecond

// session is a command's use of the membership API.
type session struct {
	*command.Connection
	client *clientv3.Client
	api    quoratepb.MembershipClient
	names  wording.Names // of all members that were ever seen: some are removed while we look
	// answered is when a request was answered last; zero if none was.
	answered time.Time
	printed  string // the last line about an event
}

// membership gives a session to a command and closes it afterwards.
func withSession(ctx context.Context, c *command.Connection, use func(*session) error) error {
	client, err := c.Open(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	return use(&session{Connection: c, client: client, names: wording.Names{},
		api: quoratepb.NewMembershipClient(client.ActiveConnection())})
}

// ask makes a request that may be repeated, until it is answered or the timeout of the command line has passed: a cluster
// that elects a leader is there again in a moment.
func (s *session) ask(ctx context.Context, request func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	bounded, release := command.CancelIfRefused(bounded, s.client.Endpoints())
	defer release()
	err := request(bounded)
	for status.Code(err) == codes.Unavailable && broadcast.Pause(bounded, retryPause) == nil {
		again := request(bounded)
		if again != nil && bounded.Err() != nil {
			break // what the server said is worth more than that the time is over
		}
		err = again
	}
	if err == nil {
		s.answered = time.Now()
	}
	return s.explainMembership(ctx, err)
}

func (s *session) explainMembership(ctx context.Context, err error) error {
	if status.Code(err) == codes.Unimplemented {
		return s.explainUnknown(ctx)
	}
	answer := status.Convert(err)
	for _, detail := range answer.Details() {
		if stale, ok := detail.(*quoratepb.StaleConfig); ok {
			return command.Refused(fmt.Errorf("%w: %s", errStale, wording.Stale(stale)))
		}
	}
	if answer.Code() == codes.Unavailable && !ofTransport(answer.Message()) {
		return command.Unreachable(fmt.Errorf("the cluster did not do it within %v: %s", s.Timeout,
			strings.TrimPrefix(answer.Message(), "etcdserver: ")))
	}
	return s.Explain(ctx, err, s.client.Endpoints())
}

// explainUnknown says what a server is that does not know the membership API: one that does not know etcd's either serves the
// other members, and no clients.
func (s *session) explainUnknown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, command.DialTimeout)
	defer cancel()
	if _, err := s.client.MemberList(ctx, clientv3.WithSerializable()); status.Code(err) == codes.Unimplemented {
		return command.Refused(fmt.Errorf("%s is where members reach each other (a peer URL): name a client URL with "+
			"--endpoints, as in --advertise-client-urls", strings.Join(s.client.Endpoints(), ", ")))
	}
	return command.Refused(errNoMembership)
}

// ofTransport tells what gRPC says of a connection from what a server says of itself; both come as UNAVAILABLE.
func ofTransport(message string) bool {
	for _, prefix := range []string{"connection error", "error reading from server", "last connection error", "transport",
		"closing transport", "name resolver error", "no children", "the connection is", "keepalive ping failed"} {
		if strings.HasPrefix(message, prefix) {
			return true
		}
	}
	return false
}

func (s *session) describe(ctx context.Context) (*quoratepb.Cluster, error) {
	var answer *quoratepb.DescribeResponse
	err := s.ask(ctx, func(ctx context.Context) (err error) {
		answer, err = s.api.Describe(ctx, &quoratepb.DescribeRequest{})
		return err
	})
	if err != nil {
		return nil, err
	}
	s.names.Note(answer.Cluster)
	return answer.Cluster, nil
}
