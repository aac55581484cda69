package rpc

import (
	"context"

	"google.golang.org/grpc"

	"github.com/quorate/quorate/internal/kv"
)

// ServeWatch serves one stream of watches without a network.
func ServeWatch(s *Services, stream grpc.ServerStream) error { return s.serveWatch(nil, stream) }

// ReviewQuota makes one review of KeepQuota.
func ReviewQuota(ctx context.Context, s *Services) { s.reviewQuota(ctx) }

// EnterBackup takes the turn of a backup.
func (s *Services) EnterBackup(ctx context.Context) (leave func(), err error) {
	return s.bounds.backupTurns.Enter(ctx)
}

// Count counts keys for a RangeStream.
func (s *Services) Count(ctx context.Context, op *kv.RangeOp) (int64, error) {
	found, _, err := s.kv.count(ctx, op)
	return found, err
}
