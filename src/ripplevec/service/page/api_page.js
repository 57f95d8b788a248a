// The API page: Swagger UI with the description of this service, and the access token of this tab if one is set.

import { authorization, getJson, RequestError, storeToken } from "./api.js";

const find = (selector) => document.querySelector(selector);

async function showApi() {
  try {
    const spec = await getJson("/openapi.json");
    find("#message").textContent = "";
    find("#token-form").hidden = true;
    find("#description-link").hidden = "Authorization" in authorization(); // a link cannot send the token
    SwaggerUIBundle({
      spec,
      dom_id: "#api",
      deepLinking: true,
      defaultModelsExpandDepth: -1,
      docExpansion: "list",
      displayRequestDuration: true,
      tryItOutEnabled: true,
      validatorUrl: null,
      requestInterceptor: addToken,
    });
  } catch (error) {
    const needsToken = error instanceof RequestError && error.status === 401;
    find("#token-form").hidden = !needsToken;
    find("#message").textContent = needsToken
      ? "This service needs an access token, also to try requests."
      : `Cannot read the description of the API: ${error.message}`;
  }
}

/** Send the token of this tab with a request that has none. */
function addToken(request) {
  request.headers = { ...authorization(), ...request.headers };
  return request;
}

find("#token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  storeToken(find("#token").value);
  showApi();
});

showApi();
