// Package pingack answers the pings by which gRPC clients measure bandwidth less often than they come.
//
// A client of grpc-go whose windows grow sends a ping with each answer that it receives, and the next one when that was
// answered (its bdpEstimator). To a client that has one small call after the other the server thus
// writes twice for each call, and the second write wakes the client for nothing. Here such an answer waits: a tenth of a
// second, or until so much was written that the client may learn something from it. Other pings, those of keep-alive first of
// all, are answered at once, as HTTP/2 requires (RFC 9113, section 6.7).
//
// The package sees what a server writes as frames. It reads nothing, and knows nothing of calls.
//
// The main type is conn; Listen puts one around each connection.
//
// Invariants:
//  1. Every byte that is written arrives, in order, but for answers to pings of bandwidth, each of which arrives once, between
//     two frames, while the connection lasts.
//  2. At most one answer waits for each connection.
//
// All methods may be called concurrently.
package pingack
