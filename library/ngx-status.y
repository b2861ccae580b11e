/* SPDX-License-Identifier: Apache-2.0 */
/* nginx: requests by status, and what was sent, in bytes */
/*
 * Costs one probe a request. A connection's end without a request has no status and is not counted.
 */
_agg bytes[long];

_probe ngx_http_free_request {
	long status = $r->err_status ? $r->err_status : $r->headers_out.status;

	if (status)
		bytes[status] <<< $r->connection->sent;
}

_probe _end {
	_print(bytes);
}
