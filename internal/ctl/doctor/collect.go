package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/doctor"
)

// lookAgain is how long a member may take to stop or to start: while it does, others hear it and its client port is closed.
const lookAgain = 2 * time.Second

// collect asks all members at once, within the timeout of the command line, and once more if a client URL seems wrong.
func collect(ctx context.Context, c *command.Connection) (*quoratepb.Collected, error) {
	return askTwice(ctx, min(lookAgain, c.Timeout), func() (*quoratepb.Collected, error) { return askAll(ctx, c) })
}

// askTwice asks, and once more after a pause if a client URL seems wrong: the member may just have been stopping or starting.
// It returns what was answered last.
func askTwice(
	ctx context.Context, pause time.Duration, ask func() (*quoratepb.Collected, error),
) (*quoratepb.Collected, error) {
	first, err := ask()
	wrong := func(f doctor.Finding) bool { return f.Code == doctor.ClientURLWrong }
	if err != nil || !slices.ContainsFunc(doctor.Judge(first), wrong) {
		return first, err
	}
	select {
	case <-ctx.Done():
		return first, nil
	case <-time.After(pause):
	}
	if again, err := ask(); err == nil {
		return again, nil
	}
	return first, nil
}

// askAll asks all members once.
func askAll(ctx context.Context, c *command.Connection) (*quoratepb.Collected, error) {
	client, err := c.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	bounded, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	reachable, release := command.CancelIfRefused(bounded, client.Endpoints())
	defer release()
	list, err := client.MemberList(reachable, clientv3.WithSerializable())
	if err != nil {
		return nil, c.Explain(ctx, err, client.Endpoints())
	}
	out := &quoratepb.Collected{AtMs: time.Now().UnixMilli()}
	answers := &command.Answers{}
	askEach := func(targets []target) []*quoratepb.CollectedMember {
		// Earlier questions have taken their part of the time; a member that is slow gets all of it again.
		asking, cancel := context.WithTimeout(ctx, c.Timeout)
		defer cancel()
		var all sync.WaitGroup
		got := make([]*quoratepb.CollectedMember, len(targets))
		for i := range targets {
			all.Go(func() { got[i] = ask(asking, c, &targets[i], list.Header.GetClusterId(), answers) })
		}
		all.Wait()
		return got
	}
	out.Members = askEach(targetsOf(list.Members))
	correct(out, askEach)
	return doctor.Trimmed(out), nil
}

// ask asks one member what it observes.
func ask(
	ctx context.Context, c *command.Connection, t *target, cluster uint64, answers *command.Answers,
) *quoratepb.CollectedMember {
	m := &quoratepb.CollectedMember{Id: t.id, Name: t.name, Endpoint: t.endpoint}
	if t.endpoint == "" {
		m.Fault, m.FaultText = doctor.FaultNoEndpoint, "it never said where it serves clients"
		return m
	}
	if err := command.Probe(ctx, t.endpoint); err != nil {
		m.Fault, m.FaultText = doctor.FaultUnreachable, command.RootCause(err)
		var lookup *net.DNSError
		switch {
		case errors.Is(err, syscall.ECONNREFUSED):
			m.Fault = doctor.FaultRefused
		case errors.As(err, &lookup):
			m.Fault = doctor.FaultUnresolved
		}
		return m
	}
	client, err := c.Dial(ctx, []string{t.endpoint})
	if err == nil {
		defer client.Close()
		err = observe(ctx, client, m, answers)
	}
	if err != nil {
		m.Fault, m.FaultText = faultOf(err)
		if m.Fault == doctor.FaultSilent && closes(ctx, t.endpoint) {
			m.Fault, m.FaultText = doctor.FaultClosed, "it closes connections at once"
		}
		return m
	}
	if o := m.Observation; o.GetMemberId() != t.id || o.GetClusterId() != cluster {
		m.Fault = doctor.FaultOther
		m.FaultText = fmt.Sprintf("it is member %x of cluster %x", o.GetMemberId(), o.GetClusterId())
		m.Observation = nil
	}
	return m
}

// closePatience is how long a port may take to close a connection that it does not want. Ports that want it wait for longer.
const closePatience = time.Second

// closes reports whether a port accepts a connection and closes it before anything is said, as one does that has too many. A
// member waits for what a client says first.
func closes(ctx context.Context, endpoint string) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closePatience)
	defer cancel()
	conn, err := command.DialMember(ctx, "tcp", endpoint)
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(closePatience))
	_, err = conn.Read(make([]byte, 1))
	var late net.Error
	return err != nil && !(errors.As(err, &late) && late.Timeout())
}

// observe asks, and notes when by the clock of this machine. The first question opens the connection: only the second one tells
// how far away the member is.
func observe(ctx context.Context, client *clientv3.Client, m *quoratepb.CollectedMember, answers *command.Answers) error {
	api := quoratepb.NewDoctorClient(client.ActiveConnection())
	bound := []grpc.CallOption{grpc.MaxCallRecvMsgSize(command.MostAnswer), grpc.ForceCodec(answers)}
	if _, err := api.Observe(ctx, &quoratepb.ObserveRequest{}, bound...); err != nil {
		return err
	}
	begun := time.Now()
	o, err := api.Observe(ctx, &quoratepb.ObserveRequest{}, bound...)
	if err != nil {
		return err
	}
	took := time.Since(begun)
	m.Observation, m.AskedMs, m.RoundTripUs = o, begun.Add(took/2).UnixMilli(), took.Microseconds()
	return nil
}

// faultOf says in a word why a member did not answer, and in a sentence.
func faultOf(err error) (word, text string) {
	text = command.PlainText(err)
	certificates := []string{"x509: ", "tls: "}
	switch code := status.Code(err); {
	case strings.Contains(text, "unknown authority"):
		return doctor.FaultAuthority, text
	case slices.ContainsFunc(certificates, func(part string) bool { return strings.Contains(text, part) }):
		return doctor.FaultTLS, text
	case code == codes.ResourceExhausted && strings.Contains(text, "larger than max"): // gRPC's word for it
		return doctor.FaultLong, fmt.Sprintf("its answer has more than %d KiB", command.MostAnswer>>10)
	case code == codes.Unimplemented:
		return doctor.FaultUnsupported, text
	case code == codes.PermissionDenied, code == codes.Unauthenticated, errors.Is(rpctypes.Error(err), rpctypes.ErrUserEmpty),
		errors.Is(rpctypes.Error(err), rpctypes.ErrPermissionDenied), strings.Contains(text, "log in as"):
		return doctor.FaultDenied, text
	}
	return doctor.FaultSilent, text
}

// clusterOf is the cluster that most members say they are of; they were asked as members of one.
func clusterOf(c *quoratepb.Collected) uint64 {
	for _, m := range c.GetMembers() {
		if id := m.GetObservation().GetClusterId(); id != 0 {
			return id
		}
	}
	return 0
}
