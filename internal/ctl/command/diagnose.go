package command

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/quorate/quorate/internal/base/printable"
	"github.com/quorate/quorate/internal/ctl/survey"
)

const (
	readyPatience = time.Second
	// readyBytes is as much of an answer as is read: the process that listens there need not be a member.
	readyBytes = 4 << 10
)

// Bare takes the scheme off an endpoint, as members advertise them.
func Bare(endpoint string) string {
	return strings.TrimPrefix(strings.TrimPrefix(endpoint, "https://"), "http://")
}

// Diagnose looks at an endpoint whose client got no answer, with the TLS of this command, and says in words why. heard is
// false if no process accepts connections there. why is empty if nothing is wrong as far as it can tell.
func (c *Connection) Diagnose(ctx context.Context, endpoint string) (why string, heard bool) {
	endpoint = Bare(endpoint)
	if reason := Probe(ctx, endpoint); reason != nil {
		return RootCause(reason), false
	}
	switch {
	case strings.HasPrefix(endpoint, "unix:"):
		return "", true
	case dialerOf(ctx) != nil:
		return lateReason(ctx, endpoint)
	}
	encryption, err := c.identity.tls()
	if err != nil {
		return err.Error(), true
	}
	ctx, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", endpoint)
	if err != nil {
		return RootCause(err), false
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline) // a connection that was closed says so at the next step
	}
	if encryption == nil {
		return askReady(conn, endpoint), true
	}
	encryption = encryption.Clone()
	encryption.NextProtos = []string{"http/1.1"}
	if encryption.ServerName == "" {
		encryption.ServerName, _, _ = net.SplitHostPort(endpoint)
	}
	secure := tls.Client(conn, encryption)
	if err := secure.HandshakeContext(ctx); err != nil {
		return c.wrongTLS(err, endpoint), true
	}
	return c.readySecurely(secure, endpoint), true
}

// latePatience is how long a connection by a dialer is watched for an end. A member waits for what a client says first.
const latePatience = 500 * time.Millisecond

// lateReason opens a connection by the dialer of the context and says why it ends at once. The road may end before the member:
// that nothing listens there is known only later.
func lateReason(ctx context.Context, endpoint string) (why string, heard bool) {
	conn, err := DialMember(ctx, "tcp", endpoint)
	if err != nil {
		return RootCause(err), false
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(latePatience))
	if _, err = conn.Read(make([]byte, 1)); err != nil && !isTimeout(err) {
		return RootCause(err), false
	}
	return "", true
}

// readySecurely asks over TLS. A server that does not take the client's certificate says so only now.
func (c *Connection) readySecurely(conn *tls.Conn, endpoint string) string {
	_, err := io.WriteString(conn, readyRequest(endpoint))
	in := bufio.NewReader(conn)
	if err == nil {
		_, err = in.Peek(1)
	}
	var alert *net.OpError
	if errors.As(err, &alert) && alert.Op == "remote error" {
		return c.wrongTLS(err, endpoint)
	}
	if err != nil {
		return noAnswer(err)
	}
	return faultsOf(in)
}

// explainNoSpace says why a write was refused for want of room: etcd's text is the same for a quota that is reached and for the
// disk of the member that was asked.
func (c *Connection) explainNoSpace(ctx context.Context, endpoints []string) string {
	text := strings.TrimPrefix(rpctypes.ErrNoSpace.Error(), "etcdserver: ")
	client, err := c.Dial(ctx, endpoints)
	if err != nil {
		return text
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	_, seats, err := survey.Seats(ctx, client)
	if err != nil {
		return text
	}
	for _, note := range survey.Notes(survey.Listed(survey.Ask(ctx, client, seats))) {
		text += "\n" + note
	}
	return text
}

// wrongTLS names what is wrong with the certificates of either side.
func (c *Connection) wrongTLS(err error, endpoint string) string {
	var plain tls.RecordHeaderError
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	cacert, cert := c.identity.flag("cacert"), c.identity.flag("cert")
	switch {
	case errors.As(err, &plain):
		return fmt.Sprintf("it does not speak TLS: write http://%s, without %s and %s, or name a port that speaks "+
			"TLS", endpoint,
			cacert, cert)
	case errors.As(err, &unknown):
		return fmt.Sprintf("its certificate is signed by no authority that this command trusts (%v): give that of the cluster "+
			"with %s FILE", unknown, cacert)
	case errors.As(err, &name):
		return fmt.Sprintf("its certificate is not for this host: %v. Name it by a host that the certificate has", name)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Sprintf("its certificate has expired, or is not valid yet (%s to %s): replace it, or correct the clock of "+
			"this machine", invalid.Cert.NotBefore.Format(time.RFC3339), invalid.Cert.NotAfter.Format(time.RFC3339))
	case errors.As(err, &invalid):
		return fmt.Sprintf("its certificate is of no use: %v", invalid)
	}
	text := err.Error()
	switch {
	case c.identity.certificate == "" &&
		(strings.Contains(text, "certificate required") || strings.Contains(text, "bad certificate")):
		return fmt.Sprintf("it asks for a certificate of the client: give %s FILE and %s FILE", cert, c.identity.flag("key"))
	case strings.Contains(text, "expired certificate"):
		return fmt.Sprintf("it says that the certificate of %s has expired: give another one", cert)
	case strings.Contains(text, "certificate required"), strings.Contains(text, "unknown certificate authority"),
		strings.Contains(text, "bad certificate"):
		return fmt.Sprintf("it does not take the certificate of %s: it is signed by another authority than those of "+
			"--trusted-ca-file there, or its name is not admitted", cert)
	}
	return noAnswer(err)
}

// readyRequest asks whether a process serves. It leaves out the read that needs a quorum: without a quorum that read fails
// after seconds only, and a member without a leader would be told as one that is stopped.
func readyRequest(endpoint string) string {
	return "GET /readyz?exclude=linearizable_read HTTP/1.1\r\nHost: " + endpoint + "\r\nConnection: close\r\n\r\n"
}

// askReady asks without TLS.
func askReady(conn net.Conn, endpoint string) string {
	if _, err := io.WriteString(conn, readyRequest(endpoint)); err != nil {
		return noAnswer(err)
	}
	in := bufio.NewReader(conn)
	head, err := in.Peek(5)
	const alert, frame = 0x15, 0x04 // the first byte of TLS's answer; the kind of HTTP/2's first frame
	const otherTLS = "it speaks TLS: write https://%s, with --cacert FILE of the authority of its certificate"
	switch {
	case len(head) > 1 && head[0] == alert && head[1] == 3:
		return fmt.Sprintf(otherTLS, endpoint)
	case len(head) > 3 && head[3] == frame && !bytes.HasPrefix(head, []byte("HTTP/")):
		return "" // a port for gRPC alone
	case err != nil:
		return noAnswer(err)
	}
	return faultsOf(in)
}

// noAnswer says in words that nothing came.
func noAnswer(err error) string {
	if errors.Is(err, io.EOF) || strings.Contains(err.Error(), "connection reset") {
		return "it accepts connections and ends them without an answer: it may speak TLS (write https://), or be no port for " +
			"clients"
	}
	if isTimeout(err) || errors.Is(err, context.DeadlineExceeded) {
		return "it accepts connections but does not answer: the process may be stopped, or very busy"
	}
	return "it accepts connections but does not answer: " + RootCause(err)
}

// faultsOf reads the answer of /readyz: what a process that serves no client says of itself.
func faultsOf(in *bufio.Reader) string {
	answer, err := http.ReadResponse(in, nil)
	if err != nil {
		return "it answers, and not in HTTP: it is no member of a cluster, or another port than that for clients"
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(answer.Body, readyBytes)) // as much as came
	if bytes.Contains(body, []byte("HTTP request to an HTTPS server")) {
		return "it speaks TLS: write https://, with --cacert FILE of the authority of its certificate"
	}
	if answer.StatusCode != http.StatusServiceUnavailable {
		return ""
	}
	var faults []string
	for line := range strings.Lines(string(body)) {
		if fault, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "[-]"); ok {
			faults = append(faults, printable.Text(fault, mostFault))
		}
	}
	return strings.Join(slices.Compact(faults), "; ")
}

// mostFault bounds a fault that a process at an endpoint says, in characters.
const mostFault = 300

// lockedOut says that a user of the command cannot log in because members know no leader; empty: it is not known that they know
// none, or the command names no user. All that asks the members is refused then, `quorate status` and the doctor included.
func (c *Connection) lockedOut(ctx context.Context, endpoints []string) string {
	if user, _, err := c.identity.login(); user == "" || err != nil {
		return ""
	}
	none := c.leaderless(ctx, endpoints)
	if len(none) == 0 {
		return ""
	}
	return "without a leader nobody can log in, and " + strings.Join(none, ", ") + " knows none: start members until a " +
		"majority runs"
}

// leaderless are those of the endpoints whose members say that they know no leader. It asks without a login, which needs a
// leader: each client may ask for the health of a member, and require a leader for that.
func (c *Connection) leaderless(ctx context.Context, endpoints []string) []string {
	nobody := &Connection{Streams: c.Streams, identity: c.identity, Timeout: c.Timeout}
	nobody.identity.user, nobody.identity.password = "", ""
	ctx, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	without := make([]bool, len(endpoints))
	var all sync.WaitGroup
	for i, e := range endpoints {
		all.Go(func() {
			client, err := nobody.Dial(ctx, []string{e})
			if err != nil {
				return
			}
			defer client.Close()
			_, err = healthpb.NewHealthClient(client.ActiveConnection()).Check(clientv3.WithRequireLeader(ctx),
				&healthpb.HealthCheckRequest{})
			without[i] = errors.Is(rpctypes.Error(err), rpctypes.ErrNoLeader)
		})
	}
	all.Wait()
	found := slices.Clone(endpoints)
	for i, is := range slices.Backward(without) {
		if !is {
			found = slices.Delete(found, i, i+1)
		}
	}
	return found
}
