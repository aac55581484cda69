package trail

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/internal/base/env"
)

// receiver is a collector that takes logs, or does as a test says.
type receiver struct {
	collector.UnimplementedLogsServiceServer
	mu      sync.Mutex
	fault   func(ctx context.Context, body string) error // of a request with such a record; nil: none
	rejects func(body string) bool                       // records that are refused in an answer of success
	lines   []string                                     // that were taken, each once by its uid
	known   map[string]bool
	service string
	most    int // records of a request
}

// Export implements collector.LogsServiceServer.
func (r *receiver) Export(
	ctx context.Context, request *collector.ExportLogsServiceRequest,
) (*collector.ExportLogsServiceResponse, error) {
	r.mu.Lock()
	fault, rejects := r.fault, r.rejects
	r.mu.Unlock()
	answer := &collector.ExportLogsServiceResponse{}
	for _, from := range request.GetResourceLogs() {
		records := from.GetScopeLogs()[0].GetLogRecords()
		for _, record := range records {
			body := record.GetBody().GetStringValue()
			if fault != nil {
				if err := fault(ctx, body); err != nil {
					return nil, err
				}
			}
			uid := record.GetAttributes()[0].GetValue().GetStringValue()
			r.mu.Lock()
			switch {
			case rejects != nil && rejects(body):
				answer.PartialSuccess = &collector.ExportLogsPartialSuccess{
					RejectedLogRecords: answer.GetPartialSuccess().GetRejectedLogRecords() + 1, ErrorMessage: "it is too old\x1b[2J"}
			case record.GetTimeUnixNano() == 0 || len(uid) != 2*uidBytes:
				r.lines = append(r.lines, "a record without its time or its uid: "+body)
			case !r.known[uid]:
				r.lines, r.known[uid] = append(r.lines, body), true
			}
			r.most = max(r.most, len(records))
			r.service = from.GetResource().GetAttributes()[0].GetValue().GetStringValue()
			r.mu.Unlock()
		}
	}
	return answer, nil
}

func (r *receiver) set(fault func(ctx context.Context, body string) error, rejects func(body string) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fault, r.rejects = fault, rejects
}

// text is what was taken, a line each.
func (r *receiver) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(append(r.lines[:len(r.lines):len(r.lines)], ""), "\n")
}

// collect serves a receiver.
func collect(t *testing.T, options ...grpc.ServerOption) (*receiver, string) {
	t.Helper()
	r := &receiver{known: map[string]bool{}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(options...)
	collector.RegisterLogsServiceServer(server, r)
	go server.Serve(l)
	t.Cleanup(server.Stop)
	return r, l.Addr().String()
}

const shortly = 300 * time.Millisecond

// sendTo is a trail with an output to a collector.
func sendTo(t *testing.T, o OTLPOptions, required bool, bytes int64) (*Trail, *audit.Policy) {
	t.Helper()
	o.Patience = shortly
	port, err := OpenOTLP(o)
	if err != nil {
		t.Fatal(err)
	}
	policy, _ := audit.Parse([]byte(`{"rules": [{"level": "metadata"}]}`))
	to := New(Options{Member: 1, Bytes: bytes, Deadline: shortly, Clock: env.WallClock{}, Logger: slog.New(slog.DiscardHandler),
		Sinks: []SinkOptions{{Name: "otlp", Port: port, Required: required, From: NewChain()}}})
	to.Run()
	t.Cleanup(func() { to.Close(time.Second) })
	return to, policy
}

// until waits for a condition.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	end := time.After(20 * time.Second)
	for !is() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("%s: it has not come to that", what)
		}
	}
}

func call(i int) *audit.Event {
	return &audit.Event{Op: audit.OpPut, Parts: []audit.Part{{Key: fmt.Appendf(nil, "k%d", i)}}}
}

// Ensure that records come to a collector in requests of many, each with its time and an id, and make up a chain.
func TestOTLP(t *testing.T) {
	r, address := collect(t)
	to, policy := sendTo(t, OTLPOptions{Address: address, Service: "quorate", Instance: "m1"}, false, 4<<20)
	const calls = 2000
	for i := range calls {
		to.Record(policy, call(i))
	}
	to.Close(5 * time.Second)
	r.wantChain(t, calls+2) // the first record, and the last one
	if r.service != "quorate" || r.most < 2 {
		t.Errorf("got %d records a request at most, of %q", r.most, r.service)
	}
	if status, _ := to.Status(); status[0].Dropped != 0 || status[0].Taken != calls+1 {
		t.Errorf("got %+v", status[0])
	}
}

// wantChain wants so many records that make up a chain, in the order of their numbers.
func (r *receiver) wantChain(t *testing.T, records uint64) {
	t.Helper()
	lines := strings.SplitAfter(r.text(), "\n")
	number := func(line string) (n uint64) {
		n, _, _ = audit.Last([]byte(strings.TrimSuffix(line, "\n")))
		return n
	}
	slices.SortFunc(lines, func(a, b string) int { return cmp.Compare(number(a), number(b)) })
	report, err := audit.Verify([]audit.File{{Name: "collected", Lines: strings.NewReader(strings.Join(lines, ""))}}, nil)
	if err != nil || report.Broken() || report.Records != records {
		t.Errorf("got %+v, %v, want %d records", report, err, records)
	}
}

// Ensure that a required output holds calls up while the collector refuses, hangs, ends the connection in the middle, refuses one
// record of many, or has no such service; that the trouble is told; and that calls pass again afterwards with nothing missing.
func TestOTLP_required(t *testing.T) {
	hangs := func(ctx context.Context, _ string) error {
		<-ctx.Done()
		return ctx.Err()
	}
	code := func(code codes.Code) func(context.Context, string) error {
		return func(context.Context, string) error { return status.Error(code, "not now\x1b[2J") }
	}
	for name, row := range map[string]struct {
		fault   func(context.Context, string) error
		rejects func(string) bool
		says    string
	}{
		"refuses":         {fault: code(codes.Unavailable), says: "not now"},
		"has no room":     {fault: code(codes.ResourceExhausted), says: "not now"},
		"has no service":  {fault: code(codes.Unimplemented), says: "takes no logs at this address"},
		"wants no record": {fault: code(codes.InvalidArgument), says: "refuses a record"},
		"hangs":           {fault: hangs, says: "did not take them"},
		"partial success": {rejects: func(body string) bool { return strings.Contains(body, `"key":"k3"`) }, says: "it is too old"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, address := collect(t)
			to, policy := sendTo(t, OTLPOptions{Address: address}, true, 1<<20)
			r.set(row.fault, row.rejects)
			for i := range 6 {
				to.Record(policy, call(i))
			}
			var blocked *BlockedError
			until(t, "calls are refused", func() bool { return errors.As(to.Admit(t.Context(), policy, call(9)), &blocked) })
			until(t, "the trouble is told", func() bool {
				status, _ := to.Status()
				return strings.Contains(status[0].Trouble, row.says) && status[0].Blocked
			})
			if why, _ := to.Status(); strings.ContainsAny(why[0].Trouble, "\x1b\n") || len(why[0].Trouble) > 2*mostOTLPText {
				t.Errorf("got %q", why[0].Trouble)
			}
			r.set(nil, nil)
			until(t, "calls pass again", func() bool { return to.Admit(t.Context(), policy, call(9)) == nil })
			to.Close(5 * time.Second)
			r.wantChain(t, 8)
			if status, _ := to.Status(); status[0].Dropped != 0 {
				t.Errorf("got %+v", status[0])
			}
		})
	}
}

// Ensure that a best-effort output goes on behind a record that the collector refuses for good, counts it, and says in the chain
// that it is missing; and that a collector that hangs makes it hold no more than its queue.
func TestOTLP_bestEffort(t *testing.T) {
	r, address := collect(t)
	r.set(nil, func(body string) bool { return strings.Contains(body, `"key":"k7"`) })
	to, policy := sendTo(t, OTLPOptions{Address: address}, false, 64<<10)
	for i := range 20 {
		to.Record(policy, call(i))
	}
	until(t, "the records behind it are taken", func() bool { return strings.Contains(r.text(), `"key":"k19"`) })
	to.Record(policy, call(20))
	until(t, "the chain says that one is missing", func() bool {
		return strings.Contains(r.text(), `"event":"lost","records":1,`) && strings.Contains(r.text(), `"key":"k20"`)
	})
	if text := r.text(); strings.Contains(text, `"key":"k7"`) || strings.Count(text, `"op":"put"`) != 20 {
		t.Errorf("got %s", text)
	}
	if status, _ := to.Status(); status[0].Dropped != 1 || status[0].Trouble != "" {
		t.Errorf("got %+v", status[0])
	}
	r.set(func(ctx context.Context, _ string) error {
		<-ctx.Done()
		return ctx.Err()
	}, nil)
	for i := range 5000 {
		to.Record(policy, call(i))
	}
	if status, _ := to.Status(); status[0].WaitingBytes > 64<<10/4 || status[0].Dropped < 4000 {
		t.Errorf("got %+v", status[0])
	}
}

// Ensure that a collector that is away, and comes back at the same address, gets what waited, and each record of a chunk whose
// answer was lost with the connection.
func TestOTLP_away(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{known: map[string]bool{}}
	first := grpc.NewServer()
	collector.RegisterLogsServiceServer(first, r)
	go first.Serve(l)
	to, policy := sendTo(t, OTLPOptions{Address: l.Addr().String()}, true, 1<<20)
	var half sync.Once
	r.set(func(_ context.Context, body string) error {
		if strings.Contains(body, `"key":"k2"`) {
			half.Do(func() { go first.Stop() })
		}
		return nil
	}, nil)
	for i := range 5 {
		to.Record(policy, call(i))
	}
	until(t, "it is away", func() bool {
		status, _ := to.Status()
		return status[0].Failed > 0 || strings.Contains(r.text(), `"key":"k4"`) // its last answer may have come in time
	})
	again, err := net.Listen("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	second := grpc.NewServer()
	collector.RegisterLogsServiceServer(second, r)
	go second.Serve(again)
	t.Cleanup(second.Stop)
	to.Record(policy, call(5))
	until(t, "all is taken", func() bool { return strings.Contains(r.text(), `"key":"k5"`) })
	to.Close(5 * time.Second)
	r.wantChain(t, 8)
}

// Ensure that TLS asks for a certificate that an authority has signed, for this host.
func TestOTLP_tls(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	r, address := collect(t, grpc.Creds(credentials.NewServerTLSFromCert(&tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key})))
	known := x509.NewCertPool()
	known.AddCert(signed)
	for roots, taken := range map[*x509.CertPool]bool{known: true, x509.NewCertPool(): false} {
		to, policy := sendTo(t, OTLPOptions{Address: address, TLS: &tls.Config{RootCAs: roots}}, false, 1<<20)
		to.Record(policy, call(1))
		until(t, "an attempt", func() bool {
			status, _ := to.Status()
			return status[0].Taken > 0 || status[0].Failed > 0
		})
		if status, _ := to.Status(); (status[0].Taken > 0) != taken || !taken && !strings.Contains(status[0].Trouble, "certificate") {
			t.Errorf("got %+v, want it taken: %v", status[0], taken)
		}
		to.Close(time.Second)
	}
	if r.text() == "" {
		t.Error("nothing came")
	}
}
