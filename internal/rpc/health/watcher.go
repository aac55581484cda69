package health

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// Watcher looks every so often whether the member makes progress, says so in the log when that changes, and keeps gRPC's
// health service at it. Probes over HTTP ask for themselves.
type Watcher struct {
	options  Options
	server   *health.Server
	closing  sync.Once
	stopping chan struct{}
	done     chan struct{}
}

// watchInterval is how often the watcher looks.
const watchInterval = time.Second

// Watch begins to look.
func Watch(options Options) *Watcher {
	w := &Watcher{options: options, server: health.NewServer(), stopping: make(chan struct{}), done: make(chan struct{})}
	w.server.SetServingStatus("", healthpb.HealthCheckResponse_SERVING)
	go w.run()
	return w
}

// Server is gRPC's health service.
func (w *Watcher) Server() healthpb.HealthServer { return known{w.server} }

// maxNameBytes is the length of the longest name of a service that may be asked for: a watch of an unknown one lasts.
const maxNameBytes = 256

var errLongName = status.Errorf(codes.InvalidArgument, "quorate: the name of a service has at most %d bytes", maxNameBytes)

// known is a health server whose clients ask for names of at most maxNameBytes.
type known struct{ *health.Server }

// Check implements healthpb.HealthServer.
func (k known) Check(ctx context.Context, r *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	if len(r.GetService()) > maxNameBytes {
		return nil, errLongName
	}
	return k.Server.Check(ctx, r)
}

// Watch implements healthpb.HealthServer.
func (k known) Watch(
	r *healthpb.HealthCheckRequest, stream grpc.ServerStreamingServer[healthpb.HealthCheckResponse],
) error {
	if len(r.GetService()) > maxNameBytes {
		return errLongName
	}
	return k.Server.Watch(r, stream)
}

// Close tells probes that the member does not serve any more.
func (w *Watcher) Close() {
	w.closing.Do(func() { close(w.stopping) })
	<-w.done
	w.server.Shutdown()
}

func (w *Watcher) run() {
	defer close(w.done)
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	serving := true
	for {
		select {
		case <-ticker.C:
		case <-w.stopping:
			return
		}
		serving = w.look(serving)
	}
}

// look notes whether the member makes progress now.
func (w *Watcher) look(served bool) (serves bool) {
	err := w.options.Stalled(readyLimit)
	switch {
	case err != nil && served:
		w.server.SetServingStatus("", healthpb.HealthCheckResponse_NOT_SERVING)
		w.options.Logger.Error("this member hangs and counts as unhealthy: look at its disk, then at "+
			"/debug/pprof/goroutine?debug=2 if --enable-pprof is on", "err", err)
	case err == nil && !served:
		w.server.SetServingStatus("", healthpb.HealthCheckResponse_SERVING)
		w.options.Logger.Info("this member makes progress again")
	}
	return err == nil
}
