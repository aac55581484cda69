package server

import (
	"context"
	"log/slog"
	"maps"
	"sync/atomic"
	"time"
)

// namesPause is how often the names of the members are looked up for the log.
const namesPause = 5 * time.Second

// names are those of the members by their ids, as logs write them. A lookup takes no lock: a goroutine that logs may hold any.
type names struct {
	known atomic.Pointer[map[string]string]
}

// of returns the name of a member, empty if it is not known.
func (n *names) of(id string) string {
	if known := n.known.Load(); known != nil {
		return (*known)[id]
	}
	return ""
}

// naming writes the name of a peer beside its id: people know members by their names.
type naming struct {
	slog.Handler
	names *names
}

// Handle implements slog.Handler.
func (h naming) Handle(ctx context.Context, r slog.Record) error {
	name := ""
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "peer" && a.Value.Kind() == slog.KindString {
			name = h.names.of(a.Value.String())
		}
		return name == ""
	})
	if name != "" {
		r = r.Clone()
		r.AddAttrs(slog.String("peer-name", name))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h naming) WithAttrs(attrs []slog.Attr) slog.Handler {
	return naming{h.Handler.WithAttrs(attrs), h.names}
}

// WithGroup implements slog.Handler.
func (h naming) WithGroup(group string) slog.Handler {
	return naming{h.Handler.WithGroup(group), h.names}
}

// watchNames begins to keep the names of the members for the log. Those of removed members stay.
func (s *Server) watchNames(context.Context, Options) error {
	s.lookUpNames()
	s.wg.Go(func() {
		ticker := time.NewTicker(namesPause)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				s.lookUpNames()
			case <-s.ctx.Done():
				return
			}
		}
	})
	return nil
}

func (s *Server) lookUpNames() {
	known := map[string]string{}
	if before := s.names.known.Load(); before != nil {
		maps.Copy(known, *before)
	}
	machine, release := s.member.Machine()
	config, _ := machine.Config()
	for i := range config.Members {
		id, name := config.Members[i].ID, config.Members[i].Name
		if published, ok := machine.Published(id); ok && published.Name != "" {
			name = published.Name
		}
		if name != "" {
			known[id.String()] = name
		}
	}
	release()
	// Ids are never used again, so that this grows with removals only, slowly; a member that was renamed has its new name.
	if len(known) > maxNames {
		clear(known)
	}
	s.names.known.Store(&known)
}

// maxNames bounds what is remembered of members that are gone.
const maxNames = 4096
