package gateway

import (
	"context"
	"net/http"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	etcdgw "go.etcd.io/etcd/api/v3/etcdserverpb/gw"
	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"

	"github.com/quorate/quorate/api/v3electionpb"
	"github.com/quorate/quorate/api/v3lockpb"
	"github.com/quorate/quorate/internal/base/invariant"
	"github.com/quorate/quorate/internal/base/tlsconn"
	"github.com/quorate/quorate/internal/limits/admission"
	"github.com/quorate/quorate/internal/rpc/inproc"
	"github.com/quorate/quorate/internal/rpc/metrics"
)

// Options of New.
type Options struct {
	Conn grpc.ClientConnInterface // that takes the address of a caller from the context: *inproc.Channel
	// MaxMessageBytes is the largest message of a gRPC client.
	MaxMessageBytes int
	// MaxHostCalls is how many calls of one client host may run at once. Further ones wait, as they would on a connection of
	// gRPC with as many streams.
	MaxHostCalls uint32
	// Held counts requests as what their client hosts hold, Answers what answers take beside the messages they are made of.
	Held    *admission.Ledger
	Answers Budget
	// Turns are for large requests to be read, and large answers to be written.
	Turns *admission.Turns
	// First times requests that arrive slowly.
	First *admission.FirstMessages
	// Hosts counts websockets that end for what they brought. Further ones of a host with many are refused.
	Hosts Hosts
	// NamesIgnored says whether callers expect to be known by a certificate, which does not count here.
	NamesIgnored func() bool
	// AllowedOrigin says whether scripts of a page may open websockets.
	AllowedOrigin func(origin string) bool
}

// Gateway serves requests below /v3/.
type Gateway struct {
	options Options
	mux     *runtime.ServeMux
	openAPI []byte
	calls   hostCalls
	intake  intake
	// Answers of calls do not wait for streams that no client reads.
	answers, events answering
}

// New makes a gateway.
func New(options Options) *Gateway {
	g := &Gateway{options: options, openAPI: OpenAPI(),
		mux: runtime.NewServeMux(runtime.WithMarshalerOption(runtime.MIMEWildcard, newMarshaler(options.Turns)))}
	g.calls.limit = int(options.MaxHostCalls)
	g.intake.first, g.intake.limit = options.First, 2*int64(options.MaxMessageBytes)+maxBodyExtraBytes
	g.intake.held = options.Held
	g.answers.budget, g.events.budget, g.events.patient = options.Answers, options.Answers, writePatience
	ctx, conn := context.Background(), options.Conn // the handlers take the requests' contexts
	for _, register := range []func() error{
		func() error { return etcdgw.RegisterKVHandlerClient(ctx, g.mux, pb.NewKVClient(conn)) },
		func() error { return etcdgw.RegisterWatchHandlerClient(ctx, g.mux, pb.NewWatchClient(conn)) },
		func() error { return etcdgw.RegisterLeaseHandlerClient(ctx, g.mux, pb.NewLeaseClient(conn)) },
		func() error { return etcdgw.RegisterClusterHandlerClient(ctx, g.mux, pb.NewClusterClient(conn)) },
		func() error {
			return etcdgw.RegisterMaintenanceHandlerClient(ctx, g.mux, pb.NewMaintenanceClient(conn))
		},
		func() error { return etcdgw.RegisterAuthHandlerClient(ctx, g.mux, pb.NewAuthClient(conn)) },
		func() error { return v3lockpb.RegisterLockHandlerClient(ctx, g.mux, v3lockpb.NewLockClient(conn)) },
		func() error {
			return v3electionpb.RegisterElectionHandlerClient(ctx, g.mux, v3electionpb.NewElectionClient(conn))
		},
	} {
		err := register()
		invariant.True(err == nil, "a handler of the gateway cannot be registered: %v", err)
	}
	return g
}

// OpenAPIPath is where the description of all paths is.
const OpenAPIPath = "/v3/openapi.json"

// Handler serves requests below /v3/.
func (g *Gateway) Handler() http.Handler { return http.HandlerFunc(g.handle) }

func (g *Gateway) handle(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == OpenAPIPath && r.Method == http.MethodGet {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(g.openAPI) // the client went away
		return
	}
	if g.options.NamesIgnored() && named(r) {
		http.Error(w, "CommonName of client sending a request against gateway will be ignored and not used as expected",
			http.StatusBadRequest)
		return
	}
	from := admission.AddressOf(r)
	ctx, end := context.WithCancelCause(peer.NewContext(r.Context(), &peer.Peer{Addr: from}))
	defer end(nil)
	host := admission.Host(from)
	taken := &answers{ctx: ctx, of: &g.answers}
	if isStream(r.URL.Path) {
		taken.of = &g.events
	}
	defer taken.release()
	caller := &inproc.Caller{Take: taken.take}
	defer caller.Release()
	r = r.WithContext(inproc.With(ctx, caller))
	c := &call{mux: g.mux, turns: &g.calls, intake: &g.intake, allowedOrigin: g.options.AllowedOrigin,
		hosts: g.options.Hosts, from: from, host: host, end: end}
	if isWebsocket(r) {
		c.serveWebsocket(w, r)
		return
	}
	paced := newPacedWriter(w, end)
	defer paced.done()
	c.serve(paced, r)
}

// named reports whether a client has shown a certificate with a common name.
func named(r *http.Request) bool {
	state := tlsconn.StateOfRequest(r)
	if state == nil {
		return false
	}
	for _, chain := range state.VerifiedChains {
		if len(chain) > 0 && chain[0].Subject.CommonName != "" {
			return true
		}
	}
	return false
}

// Collect shows what requests take.
func (g *Gateway) Collect(e *metrics.Emitter) {
	calls, waiting := g.calls.counts()
	const help = "Calls through the JSON gateway, by whether they run."
	e.Gauge("quorate_gateway_calls", help, float64(calls), "state", "running")
	e.Gauge("quorate_gateway_calls", help, float64(waiting), "state", "waiting")
	running, queued := g.options.Turns.Counts()
	const large = "Large messages that are being read or written as JSON, or compressed, by whether they have their turn."
	e.Gauge("quorate_large_messages", large, float64(running), "state", "running")
	e.Gauge("quorate_large_messages", large, float64(queued), "state", "waiting")
	e.Gauge("quorate_gateway_request_bytes", "Bytes that requests to the JSON gateway take that are under way.",
		float64(g.intake.bytes.Load()))
	const answers = "Memory of answers that the JSON gateway sends."
	e.Gauge("quorate_gateway_answer_bytes", answers, float64(g.answers.bytes.Load()), "kind", "call")
	e.Gauge("quorate_gateway_answer_bytes", answers, float64(g.events.bytes.Load()), "kind", "stream")
	e.Gauge("quorate_gateway_streams_waiting", "Streams of the JSON gateway that wait for memory.",
		float64(g.events.waiting.Load()))
	e.Counter("quorate_gateway_refused_total", "Calls of the JSON gateway that were refused for the memory they take.",
		float64(g.intake.refused.Load()+g.answers.refused.Load()+g.events.refused.Load()))
}
