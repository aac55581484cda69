package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	defaultEndpoint = "127.0.0.1:2379"
	defaultTimeout  = 5 * time.Second
	DialTimeout     = time.Second
	// patience is how long a request may wait before we look whether a process listens at all.
	patience = 300 * time.Millisecond
	// A stream that may be quiet for long asks now and then whether the other side is still there. Servers refuse clients
	// that ask more often than every 5 s.
	keepAliveTime    = 10 * time.Second
	keepAliveTimeout = 5 * time.Second
)

// reconnect is how often a member that went away is tried again: the operator is waiting.
var reconnect = backoff.Config{BaseDelay: 200 * time.Millisecond, Multiplier: 1.5, Jitter: 0.2, MaxDelay: 2 * time.Second}

// Connection is how a command reaches the cluster; its fields are set by flags.
type Connection struct {
	Streams   Streams
	endpoints string
	identity  identity
	Timeout   time.Duration
	Output    string
	formats   []string // that output may name, the default first
	// MostAnswer bounds one answer, in bytes; zero: 64 MiB. The process at an endpoint may be any process.
	MostAnswer int
	unrecorded unrecorded
}

const (
	mostAnswer = 64 << 20
	// LargeAnswer is for commands that read keys: a member answers with at most --max-response-bytes.
	LargeAnswer = 1 << 30
)

func NewConnection(s Streams) *Connection {
	return &Connection{Streams: s, formats: []string{"text", "json"}}
}

// AddTo gives a command the flags of a client, and the one for the output.
func (c *Connection) AddTo(cmd *cobra.Command) *cobra.Command {
	c.AddClientTo(cmd)
	cmd.Flags().StringVarP(&c.Output, "output", "o", c.formats[0], Alternatives(c.formats))
	return cmd
}

// AddClientTo gives a command the flags of a client, for one that has its own outputs.
func (c *Connection) AddClientTo(cmd *cobra.Command) {
	c.Output = c.formats[0]
	cmd.Flags().StringVar(&c.endpoints, "endpoints", variable(c.Streams, "ENDPOINTS", defaultEndpoint),
		"members to connect to, separated by commas (or QUORATE_ENDPOINTS, ETCDCTL_ENDPOINTS)")
	c.identity.addTo(cmd, c.Streams)
	cmd.Flags().DurationVar(&c.Timeout, "timeout", defaultTimeout, "how long to wait for an answer")
}

// Asked reports whether the command line or the environment names members, rather than the default.
func (c *Connection) Asked(cmd *cobra.Command) bool {
	return cmd.Flags().Changed("endpoints") || variableName(c.Streams, "ENDPOINTS") != ""
}

// Alternatives writes words as a choice: a, b or c.
func Alternatives(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func (c *Connection) JSON() bool { return c.Output == "json" }

// list returns the endpoints without their schemes.
func (c *Connection) list() ([]string, error) {
	var out []string
	for part := range strings.SplitSeq(c.endpoints, ",") {
		part = strings.TrimSpace(part)
		switch {
		case part == "":
		case strings.HasPrefix(part, "unixs:"):
			return nil, Usagef("endpoint %s: encrypted sockets of unix are not supported", part)
		case strings.HasPrefix(part, "unix:"):
			out = append(out, part)
		default:
			address := strings.TrimSuffix(c.identity.note(part), "/")
			switch scheme, rest, other := strings.Cut(address, "://"); {
			case other:
				return nil, Usagef("endpoint %s: %s is no scheme of a member: write http://%s, or https://%[3]s for "+
					"TLS", part, scheme, rest)
			case strings.ContainsAny(address, " \t"):
				return nil, Usagef("endpoint %q: separate endpoints by commas", part)
			case strings.Contains(address, "/"):
				at, _, _ := strings.Cut(address, "/")
				return nil, Usagef("endpoint %s says more than a host and a port: write %s", part, at)
			}
			if _, _, err := net.SplitHostPort(address); err != nil {
				return nil, Usagef("endpoint %s lacks a port: write %s:2379", part, address)
			}
			out = append(out, address)
		}
	}
	if len(out) == 0 {
		return nil, Usagef("%s names no member", c.identity.endpoints())
	}
	return out, nil
}

// Login returns the user and the password with which the command connects; both are empty if no user is named.
func (c *Connection) Login() (user, password string, err error) { return c.identity.login() }

// Named returns how many members --endpoints names.
func (c *Connection) Named() int {
	return len(strings.FieldsFunc(c.endpoints, func(r rune) bool { return r == ',' }))
}

// Open returns a client of all endpoints. It does not wait for a connection.
func (c *Connection) Open(ctx context.Context) (*clientv3.Client, error) {
	if !slices.Contains(c.formats, c.Output) {
		return nil, Usagef("--output %q: choose %s", c.Output, Alternatives(c.formats))
	}
	if c.Timeout <= 0 {
		return nil, Usagef("--timeout %v: give a time, such as 5s", c.Timeout)
	}
	endpoints, err := c.list()
	if err != nil {
		return nil, err
	}
	return c.Dial(ctx, endpoints)
}

// Dial returns a client of some endpoints, which bear no scheme.
func (c *Connection) Dial(ctx context.Context, endpoints []string) (*clientv3.Client, error) {
	user, password, err := c.identity.login()
	if err != nil {
		return nil, err
	}
	encryption, err := c.identity.tls()
	if err != nil {
		return nil, err
	}
	options := append(c.unrecorded.options(), grpc.WithConnectParams(grpc.ConnectParams{Backoff: reconnect}))
	if d := dialerOf(ctx); d != nil {
		options = append(options, grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return d(ctx, "tcp", address)
		}))
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: endpoints, Context: ctx, DialTimeout: c.loginTimeout(ctx, user, endpoints), Logger: zap.NewNop(),
		Username: user, Password: password, TLS: encryption,
		DialKeepAliveTime: keepAliveTime, DialKeepAliveTimeout: keepAliveTimeout,
		MaxCallRecvMsgSize: cmp.Or(c.MostAnswer, mostAnswer),
		DialOptions:        options,
	})
	switch {
	case err == nil:
		return client, nil
	case user != "" && !Silent(err): // it logs in at once
		return nil, Refused(fmt.Errorf("log in as %s: %s", user, bareText(err)))
	case user != "":
		return nil, c.Explain(ctx, err, endpoints)
	}
	return nil, Unreachable(fmt.Errorf("connect to %s: %w", strings.Join(endpoints, ","), err))
}

// loginTimeout is how long a login may take, which etcd's client bounds by its DialTimeout: as long as any other request, since
// a busy member compares a password for seconds. If no endpoint listens, it is short.
func (c *Connection) loginTimeout(ctx context.Context, user string, endpoints []string) time.Duration {
	if user == "" || refusedByAll(ctx, endpoints) {
		return DialTimeout
	}
	return c.Timeout
}

// Do runs one request with the timeout of the command line and explains its failure.
func (c *Connection) Do(ctx context.Context, request func(context.Context, *clientv3.Client) error) error {
	client, err := c.Open(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	bounded, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	bounded, release := CancelIfRefused(bounded, client.Endpoints())
	defer release()
	return c.Explain(ctx, request(bounded, client), client.Endpoints())
}

var errRefused = errors.New("ctl: no endpoint accepts connections")

// CancelIfRefused ends the context early if no endpoint listens. The client would go on trying until the timeout, which
// helps programs and annoys people.
func CancelIfRefused(parent context.Context, endpoints []string) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	timer := time.AfterFunc(patience, func() {
		if refusedByAll(ctx, endpoints) {
			cancel(errRefused)
		}
	})
	return ctx, func() {
		timer.Stop()
		cancel(nil)
	}
}

// refusedByAll reports whether no endpoint listens.
func refusedByAll(ctx context.Context, endpoints []string) bool {
	return !slices.ContainsFunc(endpoints, func(e string) bool {
		return !errors.Is(Probe(ctx, e), syscall.ECONNREFUSED)
	})
}

// Probe tries to open a connection to an endpoint.
func Probe(ctx context.Context, endpoint string) error {
	network, address := "tcp", endpoint
	if path, ok := strings.CutPrefix(endpoint, "unix:"); ok {
		network, address = "unix", strings.TrimPrefix(path, "//")
	}
	ctx, cancel := context.WithTimeout(ctx, DialTimeout)
	defer cancel()
	conn, err := DialMember(ctx, network, address)
	if err != nil {
		return err
	}
	return conn.Close()
}

// Explain turns a client's error into a message for a person, with the status to exit with.
func (c *Connection) Explain(ctx context.Context, err error, endpoints []string) error {
	var f *Failure
	switch {
	case err == nil:
		return nil
	case errors.As(err, &f), errors.Is(err, ErrQuiet):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	}
	if errors.Is(rpctypes.Error(err), rpctypes.ErrUserEmpty) {
		return Refused(errors.New("authentication is enabled: give --user NAME:PASSWORD, or --user and --password"))
	}
	if strings.Contains(PlainText(err), "unknown service etcdserverpb.") {
		return Refused(fmt.Errorf("%s is no port for clients: it may be where members reach each other (--listen-peer-urls); "+
			"give %s those of --advertise-client-urls", strings.Join(endpoints, ", "), c.identity.endpoints()))
	}
	if status.Code(err) == codes.PermissionDenied || errors.Is(rpctypes.Error(err), rpctypes.ErrPermissionDenied) {
		return Refused(errors.New(c.identity.explainDenied(bareText(err))))
	}
	if errors.Is(rpctypes.Error(err), rpctypes.ErrNoSpace) {
		return Refused(errors.New(c.explainNoSpace(ctx, endpoints)))
	}
	if !Silent(err) {
		return Refused(errors.New(bareText(err)))
	}
	if err := c.unrecorded.explain(); err != nil {
		return err
	}
	var refusing, heard, said []string
	saying := map[string][]string{} // to each sentence of said, the endpoints of which it is true
	for _, e := range endpoints {
		why, answers := c.Diagnose(ctx, e)
		switch {
		case !answers:
			refusing = append(refusing, fmt.Sprintf("%s: %s", e, why))
			continue
		case why != "":
			if saying[why] == nil {
				said = append(said, why)
			}
			saying[why] = append(saying[why], e)
		}
		heard = append(heard, e)
	}
	for i, why := range said {
		said[i] = fmt.Sprintf("%s: %s", strings.Join(saying[why], ", "), why)
	}
	if len(heard) == 0 {
		return Unreachable(fmt.Errorf("cannot reach %s\nIs it running? Start a cluster with `quorate "+
			"dev`, or name its members with --endpoints", strings.Join(refusing, ", ")))
	}
	hint := "it may have no leader; see `quorate status`"
	if none := c.lockedOut(ctx, heard); none != "" {
		hint = strings.Join(slices.Concat([]string{none}, said, refusing), "; ")
	} else if len(said) > 0 {
		hint = strings.Join(append(said, refusing...), "; ")
	} else if len(refusing) > 0 {
		hint = "not running: " + strings.Join(refusing, ", ") + "; see `quorate status`"
	}
	return Unreachable(fmt.Errorf("no answer from %s within %v: %s", strings.Join(heard, ", "),
		c.Timeout, hint))
}

// Silent tells errors of a cluster that did not answer from answers.
func Silent(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return true
	}
	var answer rpctypes.EtcdError
	if errors.As(err, &answer) {
		return false
	}
	switch status.Code(err) {
	case codes.DeadlineExceeded, codes.Canceled, codes.Unavailable:
		return true
	}
	return false
}

// PlainText returns an error's message without gRPC's preamble.
func PlainText(err error) string {
	var answer rpctypes.EtcdError
	if errors.As(err, &answer) {
		return answer.Error()
	}
	if s, ok := status.FromError(err); ok {
		return s.Message()
	}
	return err.Error()
}

// bareText is PlainText without the name of the program that says it, with which a command's own line begins.
func bareText(err error) string {
	return strings.TrimPrefix(strings.TrimPrefix(PlainText(err), "etcdserver: "), "quorate: ")
}

// RootCause returns the innermost reason of a network error, such as "connection refused".
func RootCause(err error) string {
	var number syscall.Errno
	if errors.As(err, &number) {
		return number.Error()
	}
	var lookup *net.DNSError
	if errors.As(err, &lookup) {
		return lookup.Err
	}
	if errors.Is(err, context.DeadlineExceeded) || isTimeout(err) {
		return "no answer"
	}
	return err.Error()
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}
