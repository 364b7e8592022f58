// Package auth finds the viewer of a request by its credential.
//
//	Authorization: Bearer shoal_<64 hex>   or   X-Sourcebot-Api-Key: shoal_<64 hex>
//	   -> a key of the catalog             -> the key's role
//	Authorization: Bearer shoal_at_...     -> an agent that a person has let in, at the tool server only
//	   -> anything else                    -> 401
//	the cookie of a browser, for pages     -> a session -> who signed in with it
//	no credential, over the socket         -> the operator
//	no credential, over the network        -> guest where anonymous access is on, else 401
//
// The socket is a Unix socket in the node's data directory that only the
// node's own user (and root) can open. Whoever connects by it is the operator,
// and so an owner: this is how `shoal key create` works on a new node.
// Clients send no secret by it, so a false socket in its place learns none.
package auth
