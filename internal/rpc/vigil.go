package rpc

import (
	"time"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// vigil watches whether the member makes progress, says so in the log when that changes, and keeps gRPC's health service
// at it. Probes over HTTP ask for themselves.
type vigil struct {
	stopping chan struct{}
	done     chan struct{}
}

// vigilInterval is how often the vigil looks.
const vigilInterval = time.Second

func startVigil(s *Services) *vigil {
	v := &vigil{stopping: make(chan struct{}), done: make(chan struct{})}
	s.health.SetServingStatus("", healthpb.HealthCheckResponse_SERVING)
	go v.run(s)
	return v
}

func (v *vigil) stop() {
	select {
	case <-v.stopping:
	default:
		close(v.stopping)
	}
	<-v.done
}

func (v *vigil) run(s *Services) {
	defer close(v.done)
	ticker := time.NewTicker(vigilInterval)
	defer ticker.Stop()
	serving := true
	for {
		select {
		case <-ticker.C:
		case <-v.stopping:
			return
		}
		serving = s.look(serving)
	}
}

// look notes whether the member makes progress now.
func (s *Services) look(served bool) (serves bool) {
	err := s.options.Stalled(readyPatience)
	switch {
	case err != nil && served:
		s.health.SetServingStatus("", healthpb.HealthCheckResponse_NOT_SERVING)
		s.options.Logger.Error("this member hangs and counts as unhealthy: look at its disk, then at "+
			"/debug/pprof/goroutine?debug=2 if --enable-pprof is on", "err", err)
	case err == nil && !served:
		s.health.SetServingStatus("", healthpb.HealthCheckResponse_SERVING)
		s.options.Logger.Info("this member makes progress again")
	}
	return err == nil
}
