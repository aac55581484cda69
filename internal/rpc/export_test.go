package rpc

import "google.golang.org/grpc"

// ServeWatch serves one stream of watches without a network.
func ServeWatch(s *Services, stream grpc.ServerStream) error { return s.serveWatch(nil, stream) }
