package answers_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/encoding/gzip" // rows of the table ask for it
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/quorate/quorate/internal/base/testnet"
	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/server"
)

var (
	endpoint = flag.String("endpoint", "", "ask this server, HOST:PORT, instead of one that is started here")
	rewrite  = flag.Bool("rewrite", false, "write testdata/etcd.txt anew from the answers of -endpoint")
)

const (
	requestsFile = "testdata/requests.txt"
	etcdFile     = "testdata/etcd.txt"
	meantFile    = "testdata/meant.txt"
)

// Ensure that what clients get wrong is answered as by etcd 3.7.3, but for what is meant.
func TestAnswers(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	client := connect(t, ctx)
	table := readTable(t, requestsFile)
	got := map[string]string{}
	var record strings.Builder
	for _, row := range table {
		if _, twice := got[row.name]; twice {
			t.Fatalf("two rows are called %q", row.name)
		}
		got[row.name] = client.ask(ctx, row)
		fmt.Fprintf(&record, "%s | %s\n", row.name, got[row.name])
	}
	if *rewrite {
		if *endpoint == "" {
			t.Fatal("-rewrite needs -endpoint: the answers to record are those of a real etcd")
		}
		if err := os.WriteFile(etcdFile, []byte(headOf(client.version(ctx))+record.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, meant := readPairs(t, etcdFile), readPairs(t, meantFile)
	for name := range meant {
		if _, known := got[name]; !known {
			t.Errorf("%s: %q is no row of the table", meantFile, name)
		}
	}
	for _, row := range table {
		reason, different := meant[row.name]
		switch same := got[row.name] == want[row.name]; {
		case !same && !different:
			t.Errorf("%s: got %s\nwant %s", row.name, got[row.name], want[row.name])
		case same && different && *endpoint == "":
			t.Errorf("%s: answered as by etcd, and should not be: %s", row.name, reason)
		}
	}
}

// headOf is the first line of the record: it has the version that the server says it is when the record is written.
func headOf(version string) string {
	return fmt.Sprintf("# What etcd %s answers to the rows of requests.txt. Written by go test ./test/answers -rewrite.\n", version)
}

// Ensure that the record is that of the etcd whose API members say that they serve.
func TestRecordedVersion(t *testing.T) {
	text, err := os.ReadFile(etcdFile)
	if err != nil {
		t.Fatal(err)
	}
	if want := headOf(config.EtcdVersion); !strings.HasPrefix(string(text), want) {
		t.Errorf("%s begins with %.80q, want %q: record the answers of that version", etcdFile, text, want)
	}
}

// version asks the server for its version.
func (a *asker) version(ctx context.Context) string {
	status, err := pb.NewMaintenanceClient(a.conn).Status(ctx, &pb.StatusRequest{})
	if err != nil {
		return "of unknown version: " + err.Error()
	}
	return status.Version
}

// asker sends rows of the table to one server.
type asker struct {
	conn *grpc.ClientConn
	self string // the id of the member
	peer string // its peer URL
}

func connect(t *testing.T, ctx context.Context) *asker {
	t.Helper()
	address := *endpoint
	if address == "" {
		address = startMember(t, ctx)
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(1<<30), grpc.MaxCallRecvMsgSize(1<<30)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	members, err := pb.NewClusterClient(conn).MemberList(ctx, &pb.MemberListRequest{}, grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	first := members.Members[0]
	return &asker{conn, strconv.FormatUint(first.ID, 10), first.PeerURLs[0]}
}

// startMember runs a member of this repository and returns its address.
func startMember(t *testing.T, ctx context.Context) string {
	t.Helper()
	address, peer := testnet.Address(t), "http://"+testnet.Address(t)
	c, err := config.Load([]string{"--name=m", "--data-dir=" + t.TempDir(), "--listen-client-urls=http://" + address,
		"--advertise-client-urls=http://" + address, "--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=m=" + peer}, nil)
	if err != nil {
		t.Fatal(err)
	}
	member, err := server.Start(ctx, c, server.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = member.Stop(context.Background()) })
	return address
}

// ask returns what the server answers: OK and the messages, or a code and its words.
func (a *asker) ask(ctx context.Context, row request) string {
	answers, err := a.call(ctx, row)
	if err != nil {
		s := status.Convert(err)
		answers = append(answers, s.Code().String()+" "+s.Message())
	}
	// The protobuf library writes a space that is none, so that no program compares its words.
	return strings.Join(strings.Fields(strings.ReplaceAll(strings.Join(answers, " "), "\u00a0", " ")), " ")
}

func (a *asker) call(ctx context.Context, row request) ([]string, error) {
	service, method, _ := strings.Cut(row.method, "/")
	path := "/etcdserverpb." + service + "/" + method
	if bytes, ok := strings.CutPrefix(row.messages[0], "hex "); ok {
		raw, err := hex.DecodeString(bytes)
		if err != nil {
			return nil, err
		}
		if err := a.conn.Invoke(ctx, path, raw, new([]byte), grpc.ForceCodec(rawCodec{})); err != nil {
			return nil, err
		}
		return []string{"OK"}, nil
	}
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName("etcdserverpb." + service))
	if err != nil {
		return nil, err
	}
	described := found.(protoreflect.ServiceDescriptor).Methods().ByName(protoreflect.Name(method))
	if described == nil {
		return nil, fmt.Errorf("%s has no method %s", service, method)
	}
	messages := make([]proto.Message, len(row.messages))
	var options []grpc.CallOption
	for i, text := range row.messages {
		text, settings := settingsOf(text)
		if settings != "" {
			ctx, options = settings.apply(ctx)
		}
		content, err := expand(text, a.names())
		if err != nil {
			return nil, err
		}
		messages[i] = dynamicpb.NewMessage(described.Input())
		if err := protojson.Unmarshal([]byte(content), messages[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", text, err)
		}
	}
	if described.IsStreamingServer() {
		return a.stream(ctx, path, described, row.answers, messages, options)
	}
	answer := dynamicpb.NewMessage(described.Output())
	if err := a.conn.Invoke(ctx, path, messages[0], answer, options...); err != nil {
		return nil, err
	}
	return []string{"OK", a.written(answer)}, nil
}

// stream sends the messages and reads as many answers as are awaited, fewer if the server ends the stream.
func (a *asker) stream(
	ctx context.Context, path string, method protoreflect.MethodDescriptor, awaited int, messages []proto.Message,
	options []grpc.CallOption,
) ([]string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := a.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, path, options...)
	if err != nil {
		return nil, err
	}
	for _, m := range messages {
		if err := stream.SendMsg(m); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
	}
	if !method.IsStreamingClient() {
		if err := stream.CloseSend(); err != nil {
			return nil, err
		}
	}
	out := []string{"OK"}
	for range awaited {
		answer := dynamicpb.NewMessage(method.Output())
		if err := stream.RecvMsg(answer); err != nil {
			return out[1:], err
		}
		out = append(out, a.written(answer))
	}
	return out, nil
}

// Ids that a server chooses are long.
var chosenID = regexp.MustCompile(`"[0-9]{12,}"`)

// written is a message as JSON, without what differs from cluster to cluster.
func (a *asker) written(m proto.Message) string {
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		return err.Error()
	}
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		return err.Error()
	}
	stripHeaders(object)
	out, err := json.Marshal(object)
	if err != nil {
		return err.Error()
	}
	plain := strings.NewReplacer(`"`+a.self+`"`, `"self"`, a.peer, "peer", "http://"+a.conn.Target(), "client").Replace(string(out))
	plain = chosenID.ReplaceAllString(plain, `"chosen"`)
	if len(plain) > maxWritten {
		plain = fmt.Sprintf("%s... of %d characters", plain[:maxWritten], len(plain))
	}
	return plain
}

// maxWritten is how much of a message is compared in words; of the rest only its length is.
const maxWritten = 300

// stripHeaders takes what names the cluster out of the headers of a message, and of messages within it.
func stripHeaders(v any) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			stripHeaders(item)
		}
	case map[string]any:
		for _, name := range []string{"cluster_id", "member_id", "raft_term"} {
			delete(v, name)
		}
		for _, item := range v {
			stripHeaders(item)
		}
	}
}

// names are the words of the table that differ from cluster to cluster.
func (a *asker) names() map[string]string { return map[string]string{"$self": a.self, "$peer": a.peer} }

// settings are what the table says of a call besides its message.
type settings string

// settingsOf takes the settings off a message: gzip, or metadata NAME=VALUE, before the JSON.
func settingsOf(text string) (string, settings) {
	before, after, found := strings.Cut(text, " {")
	if !found || strings.HasPrefix(text, "{") {
		return text, ""
	}
	return "{" + after, settings(before)
}

func (s settings) apply(ctx context.Context) (context.Context, []grpc.CallOption) {
	if s == "gzip" {
		return ctx, []grpc.CallOption{grpc.UseCompressor("gzip")}
	}
	name, value, _ := strings.Cut(string(s), "=")
	return metadata.AppendToOutgoingContext(ctx, name, value), nil
}

// rawCodec sends bytes as they are.
type rawCodec struct{}

func (rawCodec) Name() string                  { return "proto" }
func (rawCodec) Marshal(v any) ([]byte, error) { return v.([]byte), nil }
func (rawCodec) Unmarshal([]byte, any) error   { return nil }
