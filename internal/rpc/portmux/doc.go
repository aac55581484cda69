// Package portmux lets gRPC and HTTP share a port, and tells handlers of both how a connection is encrypted below.
//
// It looks at the first bytes of a connection and hands it on. It does not encrypt, and bounds connections only until they
// have said what they want; what both servers do with a connection is theirs.
//
// The main type is Mux. Package base/tlsconn tells the servers behind it how a connection is encrypted.
//
// Invariants:
//  1. A connection is handed to exactly one server, or closed.
//  2. A connection that says nothing keeps none waiting: it has a deadline, and is closed earlier when too many newer ones
//     have said nothing yet.
//  3. A handler finds a client's certificates where they would be if its own server had done the handshake.
//
// All methods may be called concurrently.
package portmux
