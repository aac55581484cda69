package trail

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/base/printable"
)

// Bounds of what a collector makes a member hold, or wait for.
const (
	otlpPatience    = 5 * time.Second // for one chunk of records
	mostOTLPAnswer  = 64 << 10        // bytes
	mostOTLPHeaders = 16 << 10        // bytes
	mostOTLPText    = 200             // characters of what it says
)

// scope names the maker of the records for a collector.
const scope = "github.com/quorate/quorate/audit"

// OTLPOptions say to which collector records go, and whose they are.
type OTLPOptions struct {
	Address  string      // host and port
	TLS      *tls.Config // nil: in the clear
	Service  string      // by which the collector knows all members
	Instance string      // by which it knows this one
	Patience time.Duration
}

// OTLP is a Port that sends records to a collector of OpenTelemetry, over gRPC: the body of each log record is the line.
// A chunk whose answer does not come is sent again, so a collector may have a record twice; its uid is the same.
//
// The project's protocol buffers are used, not OpenTelemetry's exporter: that one tells its caller nothing of records that the
// collector has refused in an answer of success.
type OTLP struct {
	options OTLPOptions
	conn    *grpc.ClientConn
	client  collector.LogsServiceClient
	from    *resource.Resource
	oneEach bool // the collector has refused some of a chunk: it is sent record by record, to see which
}

// OpenOTLP makes the port. It does not wait for the collector.
func OpenOTLP(o OTLPOptions) (*OTLP, error) {
	if o.Patience == 0 {
		o.Patience = otlpPatience
	}
	p := &OTLP{options: o, from: &resource.Resource{Attributes: []*common.KeyValue{
		attribute("service.name", o.Service), attribute("service.instance.id", o.Instance)}}}
	return p, p.dial()
}

func attribute(key, value string) *common.KeyValue {
	return &common.KeyValue{Key: key, Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: value}}}
}

// dial makes a connection, which is used when the first records are sent.
func (o *OTLP) dial() error {
	security := insecure.NewCredentials()
	if o.options.TLS != nil {
		security = credentials.NewTLS(o.options.TLS)
	}
	again := backoff.DefaultConfig
	again.MaxDelay = o.options.Patience
	conn, err := grpc.NewClient(o.options.Address, grpc.WithTransportCredentials(security), grpc.WithDisableServiceConfig(),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: again, MinConnectTimeout: o.options.Patience}),
		grpc.WithMaxHeaderListSize(mostOTLPHeaders),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(mostOTLPAnswer)))
	if err != nil {
		return fmt.Errorf("collector %s: %w", o.options.Address, err)
	}
	o.conn, o.client = conn, collector.NewLogsServiceClient(conn)
	return nil
}

// Close implements io.Closer.
func (o *OTLP) Close() error { return o.conn.Close() }

// Write implements Port.
func (o *OTLP) Write(lines []byte) (n int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), o.options.Patience)
	defer cancel()
	var refused *RefusedError
	if !o.oneEach {
		if err = o.send(ctx, lines); err == nil {
			return len(lines), nil
		}
		o.oneEach = errors.As(err, &refused)
	}
	if o.oneEach {
		n, err = o.sendEach(ctx, lines)
	}
	if err != nil && ctx.Err() != nil { // the connection may lead nowhere: the next attempt has another one
		_ = o.conn.Close()
		err = errors.Join(err, o.dial())
	}
	return n, err
}

// sendEach sends records one by one, until the collector refuses one.
func (o *OTLP) sendEach(ctx context.Context, lines []byte) (n int, err error) {
	for line := range bytes.Lines(lines) {
		var refused *RefusedError
		if err := o.send(ctx, line); errors.As(err, &refused) {
			return n, &RefusedError{Bytes: len(line), Why: refused.Why}
		} else if err != nil {
			return n, err
		}
		n += len(line)
	}
	o.oneEach = false
	return n, nil
}

// send sends records in one request. The error is a *RefusedError if the collector refuses some of them, whatever is repeated.
func (o *OTLP) send(ctx context.Context, lines []byte) error {
	answer, err := o.client.Export(ctx, o.request(lines))
	switch status.Code(err) {
	case codes.OK:
	case codes.InvalidArgument:
		return &RefusedError{Why: o.says(status.Convert(err).Message())}
	case codes.Unimplemented:
		return fmt.Errorf("the collector takes no logs at this address: %s", o.says(status.Convert(err).Message()))
	default:
		return fmt.Errorf("the collector did not take them: %s", o.says(err.Error()))
	}
	if part := answer.GetPartialSuccess(); part.GetRejectedLogRecords() != 0 {
		return &RefusedError{Why: o.says(part.GetErrorMessage())}
	}
	return nil
}

// says bounds a text of the collector.
func (o *OTLP) says(text string) string {
	if text == "" {
		return "it does not say why"
	}
	return printable.Text(text, mostOTLPText)
}

// request makes log records of lines.
func (o *OTLP) request(lines []byte) *collector.ExportLogsServiceRequest {
	var records []*logs.LogRecord
	for line := range bytes.Lines(lines) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		at := timeOf(line)
		records = append(records, &logs.LogRecord{TimeUnixNano: at, ObservedTimeUnixNano: at, EventName: "quorate.audit",
			SeverityNumber: logs.SeverityNumber_SEVERITY_NUMBER_INFO,
			Body:           &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: string(line)}},
			Attributes:     []*common.KeyValue{attribute("log.record.uid", uidOf(line))}})
	}
	all := &logs.ScopeLogs{Scope: &common.InstrumentationScope{Name: scope}, LogRecords: records}
	return &collector.ExportLogsServiceRequest{
		ResourceLogs: []*logs.ResourceLogs{{Resource: o.from, ScopeLogs: []*logs.ScopeLogs{all}}}}
}

// timeOf returns the time of a line as package audit writes it, in nanoseconds since 1970; zero: unknown.
func timeOf(line []byte) uint64 {
	_, rest, _ := bytes.Cut(line, []byte(`"time":"`))
	text, _, _ := bytes.Cut(rest, []byte(`"`))
	at, err := time.Parse(time.RFC3339Nano, string(text))
	if err != nil {
		return 0
	}
	return uint64(max(at.Unix(), 0))*uint64(time.Second) + uint64(at.Nanosecond())
}

// uidBytes are enough that no two records have one id.
const uidBytes = 16

// uidOf is the same whenever a record is sent.
func uidOf(line []byte) string {
	sum := sha256.Sum256(line)
	return hex.EncodeToString(sum[:uidBytes])
}

// RefusedError is a Port's refusal of the next record of a chunk, for good. A best-effort sink drops it, and goes on.
type RefusedError struct {
	Bytes int // of the record's line; zero: it is not known which record it is
	Why   string
}

// Error implements error.
func (e *RefusedError) Error() string {
	return "the collector refuses a record of " + plural.Of(e.Bytes, "byte") + ": " + e.Why
}
