// Package cpuparts says for which duty a server spends its processor time, by CPU profiles of its members. The same table of
// functions and the same rule are for all servers.
//
// A sample belongs to the part of the frame nearest to its leaf that the table names. Frames that it does not name (the Go
// runtime's, protobuf's, the standard library's) belong to their callers. Frames of gRPC and HTTP/2 serve clients and other
// members alike: such a sample belongs to the network between members if a frame nearer to its root does. Samples of the
// runtime alone are its scheduler and its garbage collector.
//
// Samples that cannot be told apart are counted for the clients' side: how a member reads from a gRPC connection that another
// member has opened.
package cpuparts
