"""The one door to Kubernetes.

Nothing outside this room speaks to an API server or imports the client library below it, so that its errors, time-outs and
hostile bytes are dealt with once. Plain Python and asyncio, no Django: the simulator and the tests use it too.

Enter by the module named for what you need: `client` (verbs), `watch` (list, then watch, for ever), `shapes` (what comes out),
`errors` (what can go wrong), `kubeconfig` (where to connect), `marks` (the names we write on other people's objects).
"""
