// Package interpose starts a program some of whose system calls wait for an answer of the caller. Linux only.
//
// The program runs under a seccomp filter which stops each of these calls and tells the caller (seccomp_unotify(2)), who lets
// it go on, sooner or later, or answers it in the place of the kernel. Calls at the same time are told at once.
//
// The filter must be there before the program begins: Start runs this executable again under another name, which sets the
// filter and becomes the program. A program that uses Start calls Main first thing in main.
package interpose
