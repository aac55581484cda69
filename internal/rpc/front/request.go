package front

import (
	"context"
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/internal/rpc/h2"
	"github.com/quorate/quorate/internal/rpc/incoming"
)

// request is what the fields of a request say.
type request struct {
	method      *method
	prompt      Prompt // nil: it needs a goroutine
	path        string
	ctx         context.Context // with the metadata and the peer, and without an end
	metadata    metadata.MD
	timeout     time.Duration // negative: none
	subtype     string
	compression string
	refused     *status.Status // nil: it may be served
	httpStatus  int            // of the refusal
}

// requestOf reads the fields of a request; those that were read before are not read again, nor are those that differ from the
// last ones of the connection only in the deadline.
func (s *Server) requestOf(conn *connection, fields *h2.Fields) *request {
	if known, ok := fields.Parsed.(*request); ok {
		return known
	}
	if r := conn.last.withTimeoutOf(fields); r != nil {
		fields.Parsed = r
		return r
	}
	r := s.parse(conn.ctx, fields)
	conn.last = lastRequest{}
	if len(fields.List) <= maxRemembered {
		conn.last = lastRequest{fields.List, r}
	}
	return r
}

// maxRemembered is how many fields a request may have that is remembered: a connection that does nothing is to keep little.
const maxRemembered = 32

// lastRequest is what a connection asked for last.
type lastRequest struct {
	fields []hpack.HeaderField
	parsed *request
}

const timeoutField = "grpc-timeout"

// withTimeoutOf returns the request with the timeout that fields name, if they name all else as the last ones; nil if not.
func (l *lastRequest) withTimeoutOf(fields *h2.Fields) *request {
	if l.parsed == nil || l.parsed.refused != nil || len(l.fields) != len(fields.List) {
		return nil
	}
	var timeout *string
	for i, f := range fields.List {
		switch {
		case f.Name != l.fields[i].Name:
			return nil
		case f.Name == timeoutField && timeout == nil:
			timeout = &fields.List[i].Value
		case f.Value != l.fields[i].Value || f.Name == timeoutField: // which of two timeouts counts is for parse to say
			return nil
		}
	}
	r := *l.parsed
	if timeout != nil {
		var err error
		if r.timeout, err = timeoutOf(*timeout); err != nil {
			return nil
		}
	}
	return &r
}

func (s *Server) parse(base context.Context, fields *h2.Fields) *request {
	r := &request{timeout: -1, httpStatus: 200}
	r.refused = s.read(r, fields)
	if r.refused == nil {
		if r.method = s.methods[r.path]; r.method == nil && s.options.Others != nil {
			r.method = &method{name: r.path, stream: s.options.Others(r.path)}
		} else if r.method == nil {
			r.refused = unknownMethod(s, r.path)
		}
	}
	r.ctx = incoming.NewContext(base, r.metadata)
	if r.refused == nil && r.method.prompt != nil && r.compression == "" && s.options.Stats == nil &&
		s.options.IsPrompt(r.ctx) {
		r.prompt = r.method.prompt
	}
	fields.Parsed = r
	return r
}

func (s *Server) read(r *request, fields *h2.Fields) *status.Status {
	r.metadata = make(metadata.MD, len(fields.List))
	var post, grpc bool
	var contentType string
	var refused *status.Status
	for _, field := range fields.List {
		name, value := field.Name, field.Value
		switch name {
		case ":method":
			post = value == "POST"
		case ":path":
			r.path = value
		case "content-type":
			if r.subtype, grpc = subtypeOf(value); !grpc {
				contentType = value
				continue
			}
			r.metadata[name] = append(r.metadata[name], value)
		case "grpc-encoding":
			if value != encoding.Identity {
				r.compression = value
			}
		case timeoutField:
			timeout, err := timeoutOf(value)
			if err != nil {
				refused = status.Newf(codes.Internal, "malformed grpc-timeout: %v", err)
			}
			r.timeout = timeout
		case ":scheme", "te", "grpc-message-type", "grpc-message", "grpc-status":
		default:
			decoded, err := metadataOf(name, value)
			if err != nil {
				refused = status.Newf(codes.Internal, "malformed binary metadata %q in header %q: %v", value, name, err)
				continue
			}
			r.metadata[name] = append(r.metadata[name], decoded)
		}
	}
	authority, host := r.metadata[":authority"], r.metadata["host"]
	delete(r.metadata, "host")
	if len(authority) == 0 && len(host) > 0 {
		r.metadata[":authority"] = host
	}
	switch {
	case len(authority) > 1 || len(host) > 1:
		r.httpStatus = 400
		return status.Newf(codes.Internal, "num values of :authority: %d, num values of host: %d, both must only have 1 value "+
			"as per HTTP/2 spec", len(authority), len(host))
	case !grpc:
		r.httpStatus = 415
		return status.Newf(codes.InvalidArgument, "invalid gRPC request content-type %q", contentType)
	case refused != nil:
		r.httpStatus = 400
		return refused
	case len(authority)+len(host) == 0:
		r.httpStatus = 400
		return status.New(codes.Internal, "no host or :authority header present")
	case !post:
		r.httpStatus = 405
		return status.New(codes.Internal, "the :method of a call is POST")
	}
	if r.compression != "" && encoding.GetCompressor(r.compression) == nil {
		return status.Newf(codes.Unimplemented, "grpc: Decompressor is not installed for grpc-encoding %q", r.compression)
	}
	return nil
}

func unknownMethod(s *Server, path string) *status.Status {
	full, rooted := strings.CutPrefix(path, "/")
	at := strings.LastIndexByte(full, '/')
	if !rooted || at < 0 {
		return status.Newf(codes.Unimplemented, "malformed method name: %q", path)
	}
	service, name := full[:at], full[at+1:]
	if s.services[service] {
		return status.Newf(codes.Unimplemented, "unknown method %v for service %v", name, service)
	}
	return status.Newf(codes.Unimplemented, "unknown service %v", service)
}

// subtypeOf returns what follows application/grpc in a content type.
func subtypeOf(contentType string) (subtype string, ok bool) {
	const base = "application/grpc"
	rest, ok := strings.CutPrefix(strings.ToLower(contentType), base)
	if !ok || rest == "" {
		return "", ok
	}
	return rest[1:], rest[0] == '+' || rest[0] == ';'
}

var timeoutUnits = map[byte]time.Duration{
	'n': time.Nanosecond, 'u': time.Microsecond, 'm': time.Millisecond, 'S': time.Second, 'M': time.Minute, 'H': time.Hour,
}

// timeoutOf reads grpc-timeout: up to eight digits and a unit.
func timeoutOf(value string) (time.Duration, error) {
	if len(value) < 2 || len(value) > 9 {
		return 0, fmt.Errorf("transport: timeout string has a wrong length: %q", value)
	}
	unit, ok := timeoutUnits[value[len(value)-1]]
	if !ok {
		return 0, fmt.Errorf("transport: timeout unit is not recognized: %q", value)
	}
	n, err := strconv.ParseUint(value[:len(value)-1], 10, 63)
	if err != nil {
		return 0, err
	}
	if n > uint64(math.MaxInt64/int64(unit)) {
		return math.MaxInt64, nil
	}
	return time.Duration(n) * unit, nil
}

// metadataOf decodes a value of metadata: those whose names end so are binary.
func metadataOf(name, value string) (string, error) {
	if !strings.HasSuffix(name, "-bin") {
		return value, nil
	}
	decoded, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(value, "="))
	return string(decoded), err
}

// appendMetadata writes metadata into a block of fields. Fields that gRPC itself writes are left out.
func appendMetadata(block []byte, md metadata.MD) []byte {
	for name, values := range md {
		if strings.HasPrefix(name, ":") || strings.HasPrefix(name, "grpc-") || name == "content-type" || name == "te" {
			continue
		}
		for _, value := range values {
			if strings.HasSuffix(name, "-bin") {
				value = base64.RawStdEncoding.EncodeToString([]byte(value))
			}
			block = h2.AppendField(block, name, value)
		}
	}
	return block
}

// appendStatus writes how a call ended; nil: it succeeded.
func appendStatus(block []byte, s *status.Status) []byte {
	if s.Code() == codes.OK {
		return h2.AppendField(block, "grpc-status", "0")
	}
	block = h2.AppendField(block, "grpc-status", strconv.Itoa(int(s.Code())))
	if text := s.Message(); text != "" {
		block = h2.AppendField(block, "grpc-message", escape(text))
	}
	if p := s.Proto(); len(p.GetDetails()) > 0 {
		if encoded, err := proto.Marshal(p); err == nil {
			block = h2.AppendField(block, "grpc-status-details-bin", base64.RawStdEncoding.EncodeToString(encoded))
		}
	}
	return block
}

// escape writes a text as grpc-message has it: bytes that are not printable, and percent signs, as %XX.
func escape(text string) string {
	const digits = "0123456789ABCDEF"
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	var escaped []byte
	for i := range len(text) {
		if c := text[i]; c >= ' ' && c <= '~' && c != '%' {
			escaped = append(escaped, c)
		} else {
			escaped = append(escaped, '%', digits[c>>4], digits[c&15])
		}
	}
	return string(escaped)
}
